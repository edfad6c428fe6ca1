// Byte ranges inside a text.
#pragma once

#include <cstddef>
#include <string_view>

namespace sinkscope {

/// Bytes [begin, end) of some text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;

  std::size_t size() const { return end - begin; }
  std::string_view of(std::string_view text) const { return text.substr(begin, end - begin); }
};

/// One stretch of a text that a pattern either matched or left out.
struct MatchedSpan {
  Span span;
  bool is_match = false;
};

}  // namespace sinkscope
