#include "eval/responses.h"

#include <utf8proc.h>

#include <algorithm>

#include "eval/math_answer.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

std::string lower_case(const std::string& text) {
  std::string lower;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(std::string_view(text).substr(at));
    append_utf8(lower,
                static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point))));
    at += c.length;
  }
  return lower;
}

std::string matched(const ResponseFilter& filter, const std::string& response) {
  const auto matches = filter.pattern->find_all(response);
  if (matches.empty()) return filter.fallback;
  const std::vector<std::string>& groups = filter.last ? matches.back() : matches.front();
  if (groups.size() == 1) return std::string(strip_python_space(groups.front()));
  const auto found =
      std::find_if(groups.begin(), groups.end(), [](const std::string& group) { return !group.empty(); });
  return found == groups.end() ? filter.fallback : std::string(strip_python_space(*found));
}

std::string comparable(const Task& task, const std::string& given) {
  std::string text = replace_invalid_utf8(given);
  for (const PythonRegex& pattern : task.ignored) text = pattern.replace_all(text, "");
  return task.ignore_case ? lower_case(text) : text;
}

}  // namespace

std::string cut_at(std::string text, const std::vector<std::string>& until) {
  for (const std::string& stop : until) text.resize(std::min(text.size(), text.find(stop)));
  return text;
}

std::string filtered(const ResponseFilter& filter, const std::string& response) {
  using Kind = ResponseFilter::Kind;
  switch (filter.kind) {
    case Kind::raw:
      return response;
    case Kind::pattern:
      return matched(filter, response);
    case Kind::boxed:
      return last_boxed(response).value_or(filter.fallback);
    case Kind::before_fence:
      return cut_at(response, {"```"});
    case Kind::whole:
      break;
  }
  return std::string(strip_python_space(replace_invalid_utf8(response)));
}

bool is_exact_match(const Task& task, const std::string& answer, const std::string& target) {
  return comparable(task, answer) == comparable(task, target);
}

}  // namespace sinkscope
