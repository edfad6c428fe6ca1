#include "text/jinja/evaluator.h"

#include "text/jinja/render.h"

namespace sinkscope::jinja {
namespace {

using testing::HasSubstr;

TEST(Evaluator, NamesAssignedInALoopEndWithTheTurn) {
  EXPECT_EQ(render("{% set x = 0 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{{ x }}{% endfor %}{{ x }}"),
            "01020");
}

TEST(Evaluator, NamespacesOutliveTheLoop) {
  EXPECT_EQ(render("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor "
                   "%}{{ ns.n }}"),
            "6");
  EXPECT_EQ(render_error("{% set d = {} %}\n{% set d.x = 1 %}"),
            "T line 2: d.x is assigned to, but d is no namespace; ADVICE");
}

TEST(Evaluator, NamesAssignedInAnIfStay) {
  EXPECT_EQ(render("{% if true %}{% set x = 1 %}{% endif %}{{ x }}"), "1");
}

TEST(Evaluator, LoopTellsWhereItIs) {
  EXPECT_EQ(render("{% for i in 'abc' %}{{ loop.index }}{{ loop.first }}{{ loop.previtem }}{{ loop.nextitem "
                   "}} {% endfor %}"),
            "1Trueb 2Falseac 3Falseb ");
  EXPECT_EQ(
      render("{% for i in 'ab' %}{% set outer = loop %}{% for j in 'xy' %}{{ outer.index }}{{ loop.index }} "
             "{% endfor %}{% endfor %}"),
      "11 12 21 22 ");
}

TEST(Evaluator, LoopsFilterBreakAndHaveAnElse) {
  EXPECT_EQ(render("{% for i in range(9) if i is odd %}{{ i }}{% if loop.index == 3 %}{% break %}{% endif "
                   "%}{% endfor %}"),
            "135");
  EXPECT_EQ(render("{% for i in [] %}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(render("{% for k, v in {'a': 1}.items() %}{{ k }}{{ v }}{% endfor %}"), "a1");
}

TEST(Evaluator, MacrosHaveDefaultsAndSeeTheNamesOutside) {
  EXPECT_EQ(render("{% macro f(a, b=2) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{% set c = 3 %}{{ f(1) }} {{ "
                   "f(1, b=5) }}"),
            "123 153");
  EXPECT_EQ(render_error("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
            "T line 1: the template calls itself or nests too deep; it may call itself without end; ADVICE");
}

TEST(Evaluator, BlocksOfTextCanBeAssignedAndFiltered) {
  EXPECT_EQ(render("{% set x | upper %}a{{ 1 }}{% endset %}{{ x }}{% filter trim %} b {% endfilter %}"),
            "A1b");
  EXPECT_EQ(render("{% generation %}{% set x = 1 %}a{% endgeneration %}{{ x is defined }}"), "aFalse");
  EXPECT_EQ(render("{% with a = 1 %}{{ a }}{% endwith %}{{ a }}"), "1");
}

TEST(Evaluator, UndefinedPrintsNothingAndHasNothing) {
  EXPECT_EQ(render("[{{ a }}{{ {}.b }}{% for x in a %}{% endfor %}{{ a | length }}{{ a is defined }}]"),
            "[0False]");
  EXPECT_EQ(render_error("\n{{ a.b }}"), "T line 2: \"a\" is undefined; ADVICE");
  EXPECT_EQ(render_error("{{ messages[0].role }}", {{"messages", nlohmann::ordered_json::array()}}),
            "T line 1: a list has no element 0; ADVICE");
  EXPECT_EQ(render_error("{{ 'a' + {}.b }}"), "T line 1: a dict has no attribute \"b\"; ADVICE");
  EXPECT_EQ(render_error("{{ (1 if false) + 1 }}"),
            "T line 1: the `if` without `else` of line 1 was false; ADVICE");
}

TEST(Evaluator, TheTemplatesOwnRefusalIsShown) {
  EXPECT_EQ(render_error("a\n{{ raise_exception('No system role') }}"),
            "T line 2: the chat template refuses these messages: No system role");
}

TEST(Evaluator, TellsTheDayItIsGiven) {
  EXPECT_EQ(render("{{ strftime_now('%d %b %Y') }} {{ strftime_now('%A %F %H') }}"),
            "06 Jul 2024 Saturday 2024-07-06 00");
  EXPECT_THAT(render_error("{{ strftime_now('%s') }}"), HasSubstr("not %s"));
}

// A branch for tools may use what is not supported here, as long as no tools are given.
TEST(Evaluator, WhatIsNotSupportedIsRefusedWhereItRuns) {
  const std::string program =
      "{% if tools %}\n{{ tools | groupby('a') }}{{ x is y }}{{ 'a'.zfill(3) }}{% endif %}ok";
  EXPECT_EQ(render(program), "ok");
  EXPECT_EQ(render_error(program, {{"tools", 1}}), "T line 2: the filter groupby is not supported; ADVICE");
  EXPECT_EQ(render_error("{{ 1 is y }}"), "T line 1: the test y is not supported; ADVICE");
  EXPECT_EQ(render_error("{{ 'a'.zfill(3) }}"),
            "T line 1: the method zfill of a string is not supported; ADVICE");
  EXPECT_EQ(render_error("{{ [].append(1) }}"),
            "T line 1: the method append of a list is not supported; ADVICE");
  EXPECT_EQ(render_error("{{ cycler('a') }}"), "T line 1: Jinja's \"cycler\" is not supported; ADVICE");
  EXPECT_EQ(render_error("{{ 'a'.upper }}"),
            "T line 1: the method upper of a string is named and not called; ADVICE");
}

TEST(Evaluator, ArgumentsAreChecked) {
  EXPECT_EQ(render_error("{{ 'a' | trim('x', 'y') }}"),
            "T line 1: the filter trim takes at most 1 arguments, not 2; ADVICE");
  EXPECT_EQ(render_error("{{ 'a' | default(value=1) }}"),
            "T line 1: the filter default has no argument named value; ADVICE");
  EXPECT_EQ(render_error("{{ 'a'.startswith(1) }}"),
            "T line 1: str.startswith takes a string, not an integer; ADVICE");
  EXPECT_EQ(render_error("{{ 'a'.replace('a') }}"), "T line 1: str.replace lacks an argument; ADVICE");
  EXPECT_EQ(render_error("{{ 1() }}"), "T line 1: an integer cannot be called; ADVICE");
}

TEST(Evaluator, StrictTemplatesDoNotPrintWhatIsNotThere) {
  const Dialect strict{.strict = true};
  EXPECT_EQ(render("{{ question }}", {}), "");
  EXPECT_EQ(render("{{ 'no' if question is not defined }}", {}, strict), "no");
  EXPECT_THROW(render("{{ question }}", {}, strict), Error);
}

TEST(Evaluator, BenchmarkTasksKeepTheirLineFeeds) {
  const Dialect kept{.trim_blocks = false, .keep_trailing_newline = true};
  EXPECT_EQ(render("{% if true %}\n a\n {% endif %}\n", {}, kept), "\n a\n \n");
  EXPECT_EQ(render("{% if true %}\n a\n {% endif %}\n"), " a\n");
}

}  // namespace
}  // namespace sinkscope::jinja
