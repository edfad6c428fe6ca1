// Parses a chat template and renders it over a short conversation. The bytes behind the first NUL byte, if
// there is one, are the user's message.
#include <sinkscope/error.h>

#include <string>
#include <string_view>

#include "text/jinja/template.h"
#include "text/unicode.h"

using namespace sinkscope;

namespace {

jinja::Value message(jinja::Work& work, const char* role, const std::string& content) {
  return jinja::make_dict(
      work, {{"role", jinja::make_text(work, role)}, {"content", jinja::make_text(work, content)}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = input.find('\0');
  const std::string user = replace_invalid_utf8(
      end == std::string_view::npos ? " Hello w\xC3\xB6rld </think>\n" : input.substr(end + 1));
  try {
    const jinja::Template program(input.substr(0, end), "fuzz", "advice");
    jinja::Work work(user.size());
    const jinja::Value messages = jinja::make_list(
        work,
        {message(work, "system", "Be brief."), message(work, "user", user), message(work, "assistant", "a")});
    const std::chrono::year_month_day day{std::chrono::year(2024), std::chrono::month(7),
                                          std::chrono::day(6)};
    const std::string text = program.render(jinja::Context{{{"messages", messages},
                                                            {"tools", jinja::None{}},
                                                            {"add_generation_prompt", true},
                                                            {"bos_token", jinja::make_text(work, "<s>")},
                                                            {"eos_token", jinja::make_text(work, "</s>")}},
                                                           day},
                                            work);
    if (!is_valid_utf8(text)) __builtin_trap();
  } catch (const Error&) {
    // Refusing is right; crashing, hanging and undefined behaviour are not.
  }
  return 0;
}
