#include "checkpoint/message.h"

#include <fmt/format.h>

#include "base/text_parts.h"

namespace sinkscope {
namespace {

constexpr std::size_t longest_quote = 100;
constexpr std::size_t most_listed = 10;

}  // namespace

std::string in_quotes(std::string_view text) {
  if (text.size() <= longest_quote) return json_line(Json(text));
  return json_line(Json(utf8_prefix(text, longest_quote))) + "...";
}

std::string shown(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_structured()) return json_type_name(value);
  return json_line(value);
}

std::string listed(std::span<const std::string> names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < most_listed; ++i) {
    if (i > 0) text += ", ";
    text += names[i];
  }
  if (names.size() > most_listed) text += fmt::format(" and {} more", names.size() - most_listed);
  return text;
}

}  // namespace sinkscope
