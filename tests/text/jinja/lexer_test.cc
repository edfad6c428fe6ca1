#include "text/jinja/lexer.h"

#include "text/jinja/render.h"
#include "text/jinja/syntax.h"

namespace sinkscope::jinja {
namespace {

using testing::HasSubstr;

TEST(Lexer, BlocksTakeTheirLineWithThem) {
  EXPECT_EQ(render("a\n  {% if true %}\nb\n  {% endif %}\nc"), "a\nb\nc");
  EXPECT_EQ(render("a {% if true %} b {% endif %} c"), "a  b  c");
  // Expressions do not.
  EXPECT_EQ(render("a\n  {{ 1 }}\nb"), "a\n  1\nb");
}

TEST(Lexer, SignsDecideAboutWhiteSpace) {
  EXPECT_EQ(render("a \n {{- 1 -}} \n b"), "a1b");
  EXPECT_EQ(render("a\n  {%+ if true +%}\nb{% endif %}"), "a\n  \nb");
  EXPECT_EQ(render("a \n{#- comment -#}\n b"), "ab");
}

TEST(Lexer, OneNewlineAtTheEndGoes) {
  EXPECT_EQ(render("a\n"), "a");
  EXPECT_EQ(render("a\n\n"), "a\n");
  EXPECT_EQ(render("a\r\nb\rc\r\n"), "a\nb\nc");
}

TEST(Lexer, RawTextIsLeftAsItIs) {
  EXPECT_EQ(render("{% raw %}{{ x }}{# y #}{% endraw %}"), "{{ x }}{# y #}");
  EXPECT_EQ(render("a {%- raw -%} {% x %} {%- endraw -%} b"), "a{% x %}b");
}

TEST(Lexer, BracesInsideStringsAndDictsEndNothing) {
  EXPECT_EQ(render("{{ '}}' ~ \"%}\" ~ {'a': {'b': 1}}.a.b }}"), "}}%}1");
}

TEST(Lexer, StringsHavePythonsEscapes) {
  EXPECT_EQ(render(R"({{ 'a\n\t\\\'\x41\u00e9\101\q' }})"), "a\n\t\\'A\u00e9A\\q");
  EXPECT_THAT(render_error(R"({{ '\ud800' }})"), HasSubstr("U+D800"));
  EXPECT_THAT(render_error(R"({{ '\x4' }})"), HasSubstr("2 digits"));
  EXPECT_THAT(render_error(R"({{ '\N{DASH}' }})"), HasSubstr("not supported"));
}

TEST(Lexer, ErrorsNameTheLine) {
  EXPECT_EQ(render_error("a\n\n{{ 'b }}"), "T line 3: a string has no end; ADVICE");
  EXPECT_EQ(render_error("a\n{# b"), "T line 2: a comment {# has no end #}; ADVICE");
  EXPECT_EQ(render_error("{{ a"), "T line 1: a tag has no end }}; ADVICE");
  EXPECT_EQ(render_error("{% raw %}\n{{"), "T line 1: {% raw %} has no {% endraw %}; ADVICE");
  EXPECT_EQ(render_error("\n{{ 1 $ 2 }}"),
            "T line 2: the character \"$\" has no meaning inside a tag; ADVICE");
  EXPECT_EQ(render_error("{{ (1] }}"), "T line 1: \"]\" closes nothing; ADVICE");
}

TEST(Lexer, TakesBrokenPrograms) {
  for (const char* broken :
       {"", "{", "{{", "{{-", "{%", "{%-", "{#", "{#-", "{#}", "{{ 'a", "{{ \"\\", "{{ '\\x", "}} %} #}",
        "{{ a. }}", "{{ .b }}", "{{ 1.", "{{ 0x }}", "{% raw", "{% raw %}{%"}) {
    const std::string ignored = render_error(broken);
    (void)ignored;
  }
  EXPECT_EQ(render("{"), "{");
  EXPECT_EQ(render("}} %} #}"), "}} %} #}");
}

}  // namespace
}  // namespace sinkscope::jinja
