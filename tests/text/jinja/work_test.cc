#include "text/jinja/work.h"

#include "text/jinja/render.h"

namespace sinkscope::jinja {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

// Each would run for ages, fill the memory or overflow the stack.
constexpr const char* hostile[] = {
    "{% for i in range(99999999999) %}{% endfor %}",
    "{% for i in range(9223372036854775807, -9223372036854775807, -1) %}{% endfor %}",
    "{% for i in range(9999) %}{% for j in range(9999) %}{% for k in range(9999) %}{% endfor %}{% endfor "
    "%}{% endfor %}",
    "{{ 'a' * 99999999999 }}",
    "{{ 99999999999 * 'abc' }}",
    "{{ [1] * 99999999999 }}",
    "{% set ns = namespace(x='abcdefgh') %}{% for i in range(99) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(99) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x "
    "}}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x "
    "| tojson }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x "
    "== ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% set ns.x = [ns.x] %}{% endfor %}",
    "{% set ns = namespace(x={}) %}{% for i in range(9999) %}{% set ns.x = {'a': ns.x} %}{% endfor %}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(9999) %}{% for j in [ns.x] %}{% set ns.x = [loop] %}{% "
    "endfor %}{% endfor %}",
    "{% set x = 'ab' * 9999999 %}{{ x.replace('', x) }}",
    "{% set x = 'ab' * 9999999 %}{{ x.split('a') | length }}",
    "{% set x = 'ab' * 9999999 %}{{ x.replace('a', x) }}",
    "{% set x = 'ab' * 9999999 %}{{ x | indent(1000) }}{{ ('\n' * 999999) | indent(1000, blank=true) }}",
    "{% set x = 'ab' * 9999999 %}{{ x.join(x) }}",
    "{% set x = 'ab' * 9999999 %}{{ x | list }}",
    "{% set x = 'ab' * 9999 %}{% for i in range(99999) %}{{ x[i] }}{% endfor %}",
    "{% set x = 'ab' * 9999 %}{% for i in range(99999) %}{% if x == x ~ '' %}{% endif %}{% endfor %}",
    "{% for i in range(99999999) %}{{ namespace() }}{% endfor %}",
    "{% macro f(n) %}{{ f(n) }}{{ f(n) }}{% endmacro %}{{ f(1) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(99) }}",
    "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "{{ 9999999999 ** 9999999999 }}",
    "{{ 2 ** 64 }}",
    "{{ 9223372036854775807 + 1 }}",
    "{{ (-9223372036854775807 - 1) // -1 }}",
    "{{ -(-9223372036854775807 - 1) }}",
    "{{ 99999999999999999999 }}",
    "{{ 'a' | map('map', 'map', 'map') | list }}",
};

TEST(Work, HostileTemplatesEndInAnError) {
  for (const char* program : hostile)
    EXPECT_THAT(
        render_error(program),
        AnyOf(HasSubstr("more work than"), HasSubstr("deep"), HasSubstr("64 bits"), HasSubstr("too large"),
              HasSubstr("finite"), HasSubstr("map inside of map"), HasSubstr("cannot be printed")))
        << program;
}

// Ten thousand turns of a long conversation are no hostile template.
TEST(Work, LongConversationsAreRendered) {
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  for (int i = 0; i < 10000; ++i) messages.push_back({{"role", "user"}, {"content", std::string(1000, 'x')}});
  const std::string text =
      render("{% for m in messages %}{{ '<' + m['role'] + '>' + m['content'] | trim + '</>' }}{% endfor %}",
             {{"messages", messages}});
  EXPECT_EQ(text.size(), 10000u * (6 + 1000 + 3));
}

}  // namespace
}  // namespace sinkscope::jinja
