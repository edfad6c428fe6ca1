#include "text/python_regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/pcre2_pattern.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

// Python's \Z is the very end, PCRE2's also stands before a last line feed.
std::string pcre2_from_python(std::string_view pattern) {
  std::string out;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    out += pattern[i];
    if (pattern[i] != '\\' || i + 1 == pattern.size()) continue;
    ++i;
    out += pattern[i] == 'Z' ? 'z' : pattern[i];
  }
  return out;
}

// Calls body(offsets) for each match. Behind an empty match the next one at the same place must not be empty.
template <typename Body>
void for_each_match(const Pcre2Pattern& pattern, std::string_view text, const Body& body) {
  Pcre2Pattern::Search search(pattern, text);
  std::size_t start = 0;
  bool after_empty = false;
  while (start <= text.size() && search.next(start, after_empty ? PCRE2_NOTEMPTY_ATSTART : 0)) {
    const auto offsets = search.offsets();
    body(offsets);
    start = offsets[1];
    after_empty = offsets[0] == offsets[1];
  }
}

}  // namespace

PythonRegex::PythonRegex(std::string_view pattern, std::string where)
    : compiled_(
          std::make_shared<const Pcre2Pattern>(pcre2_from_python(pattern), 0, pattern, std::move(where))) {}

std::vector<std::vector<std::string>> PythonRegex::find_all(std::string_view text) const {
  const std::string valid = replace_invalid_utf8(text);
  std::vector<std::vector<std::string>> found;
  for_each_match(*compiled_, valid, [&](std::span<const std::size_t> offsets) {
    std::vector<std::string>& groups = found.emplace_back();
    const std::size_t first = offsets.size() > 2 ? 1 : 0;
    for (std::size_t g = first; 2 * g < offsets.size(); ++g)
      groups.push_back(offsets[2 * g] == PCRE2_UNSET
                           ? ""
                           : valid.substr(offsets[2 * g], offsets[2 * g + 1] - offsets[2 * g]));
  });
  return found;
}

std::string PythonRegex::replace_all(std::string_view text, std::string_view by) const {
  const std::string valid = replace_invalid_utf8(text);
  std::string out;
  std::size_t copied = 0;
  for_each_match(*compiled_, valid, [&](std::span<const std::size_t> offsets) {
    out.append(valid, copied, offsets[0] - copied).append(by);
    copied = offsets[1];
  });
  return out.append(valid, copied);
}

}  // namespace sinkscope
