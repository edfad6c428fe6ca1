// The header Content-Range of an answer with part of a file.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sinkscope {

struct ContentRange {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::optional<std::uint64_t> total;  // none for "*"
};

/// "bytes FIRST-LAST/TOTAL"; none when the text is anything else.
std::optional<ContentRange> parse_content_range(std::string_view text);

}  // namespace sinkscope
