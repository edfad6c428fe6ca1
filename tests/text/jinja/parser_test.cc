#include "text/jinja/parser.h"

#include "text/jinja/render.h"

namespace sinkscope::jinja {
namespace {

using testing::HasSubstr;

std::string repeat(const std::string& text, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Parser, OperatorsBindAsInJinja) {
  EXPECT_EQ(render("{{ 1 + 2 * 3 ** 2 }}"), "19");
  EXPECT_EQ(render("{{ 2 ** 2 ** 3 }}"), "64");  // Python's is 256
  EXPECT_EQ(render("{{ 'a' ~ 1 ~ 2 * 3 }}"), "a16");
}

TEST(Parser, FiltersBindTighterThanSums) {
  EXPECT_EQ(render("{{ 'a ' + ' b ' | trim + ' c' }}"), "a b c");
  EXPECT_EQ(render("{{ -1 | abs }}"), "1");
}

TEST(Parser, RefusesStatementsItDoesNotKnowByNameAndLine) {
  EXPECT_EQ(render_error("a\n{% include 'b' %}"),
            "T line 2: the statement {% include %} is not supported; ADVICE");
  EXPECT_EQ(render_error("{% call f() %}"), "T line 1: the statement {% call %} is not supported; ADVICE");
  EXPECT_THAT(render_error("{% for a in b recursive %}{% endfor %}"), HasSubstr("recursive"));
  EXPECT_THAT(render_error("{{ f(*a) }}"), HasSubstr("* and ** in a call"));
  EXPECT_THAT(render_error("{% for a in b %}{% macro f() %}{% endmacro %}{% endfor %}"),
              HasSubstr("a macro inside of a for"));
}

TEST(Parser, NamesTheLineAtWhichABlockBegins) {
  EXPECT_EQ(render_error("\n\n{% if a %}\nb"),
            "T line 3: a block that begins here has no {% endif %}; ADVICE");
  EXPECT_EQ(render_error("{% for a in b %}\n{% endif %}"),
            "T line 2: {% endif %} does not close the block it stands in; ADVICE");
  EXPECT_EQ(render_error("{% endfor %}"), "T line 1: {% endfor %} closes nothing; ADVICE");
}

TEST(Parser, WhatIsExpectedIsNamed) {
  EXPECT_EQ(render_error("{{ a b }}"), "T line 1: }} is expected, not \"b\"; ADVICE");
  EXPECT_EQ(render_error("{{ }}"), "T line 1: an expression is expected, not }}; ADVICE");
  EXPECT_EQ(render_error("{% set true = 1 %}"), "T line 1: true cannot be assigned to; ADVICE");
  EXPECT_EQ(render_error("{% break %}"), "T line 1: {% break %} stands in no for; ADVICE");
}

// Depth is bounded, or the machine's stack would be.
TEST(Parser, BoundsNesting) {
  for (const auto& [open, close] :
       {std::pair("(", ")"), std::pair("[", "]"), std::pair("-", ""), std::pair("not ", ""),
        std::pair("{'a':", "}"), std::pair("f(", ")"), std::pair("a[", "]")})
    EXPECT_THAT(render_error("{{ " + repeat(open, 10000) + "1" + repeat(close, 10000) + " }}"),
                HasSubstr("deep"))
        << open;
  EXPECT_THAT(render_error("{{ 1" + repeat(" + 1", 10000) + " }}"), HasSubstr("deep"));
  EXPECT_THAT(render_error("{{ a" + repeat(".a", 10000) + " }}"), HasSubstr("deep"));
  EXPECT_THAT(render_error("{{ a" + repeat(" | trim", 10000) + " }}"), HasSubstr("deep"));
  EXPECT_THAT(render_error("{{ a" + repeat(" if a", 10000) + " }}"), HasSubstr("deep"));
  EXPECT_THAT(render_error(repeat("{% if a %}", 10000)), HasSubstr("deep"));
  EXPECT_EQ(render("{{ 1" + repeat(" + 1", 100) + " }}"), "101");
  EXPECT_EQ(render("{{ 'a'" + repeat(" ~ 'a'", 10000) + " }}").size(), 10001u);
  EXPECT_EQ(render("{% if a %}" + repeat("{% elif a %}", 10000) + "{% else %}b{% endif %}"), "b");
}

}  // namespace
}  // namespace sinkscope::jinja
