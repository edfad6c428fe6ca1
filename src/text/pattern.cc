#include "text/pattern.h"

#include <sinkscope/error.h>

#include "text/find_text.h"

namespace sinkscope {
namespace {

void find_string(const std::string& needle, std::string_view text, std::size_t offset,
                 std::vector<MatchedSpan>& out) {
  std::size_t covered = 0;
  for (std::size_t at = find_text(text, needle); at != std::string_view::npos;
       at = find_text(text, needle, covered)) {
    if (covered < at) out.push_back({{offset + covered, offset + at}, false});
    covered = at + needle.size();
    out.push_back({{offset + at, offset + covered}, true});
  }
  if (covered < text.size()) out.push_back({{offset + covered, offset + text.size()}, false});
}

}  // namespace

Pattern read_pattern(const JsonPlace& place) {
  if (const auto text = place.find("String")) {
    if (text->as_string().empty()) throw Error("{} is empty; a pattern must match something", text->where);
    return text->as_string();
  }
  const auto regex = place.find("Regex");
  if (!regex) throw Error("{} must be {{\"String\": ...}} or {{\"Regex\": ...}}", place.where);
  if (regex->as_string().empty()) throw Error("{} is empty; a pattern must match something", regex->where);
  return Regex(regex->as_string(), place.where);
}

void find_pattern(const Pattern& pattern, std::string_view text, std::size_t offset,
                  std::vector<MatchedSpan>& out) {
  if (text.empty()) return;
  if (const auto* needle = std::get_if<std::string>(&pattern))
    find_string(*needle, text, offset, out);
  else
    std::get<Regex>(pattern).find(text, offset, out);
}

std::string replace_pattern(const Pattern& pattern, std::string_view text, std::string_view content) {
  std::vector<MatchedSpan> spans;
  find_pattern(pattern, text, 0, spans);
  std::string out;
  out.reserve(text.size());
  for (const MatchedSpan& part : spans) out.append(part.is_match ? content : part.span.of(text));
  return out;
}

Replacement read_replacement(const JsonPlace& place) {
  Replacement replacement{read_pattern(place.at("pattern")), place.at("content").as_string()};
  if (std::holds_alternative<Regex>(replacement.pattern) &&
      replacement.content.find('$') != std::string::npos)
    throw Error("{}: `$` in the content of a regular expression's Replace is not supported", place.where);
  return replacement;
}

}  // namespace sinkscope
