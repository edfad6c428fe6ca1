// Sets of small numbers as users write them: "0-3,7".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinkscope {

/// Empty: all numbers.
struct NumberRanges {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;  // first and last, both in

  bool contains(std::int64_t number) const {
    if (ranges.empty()) return true;
    for (const auto& [first, last] : ranges)
      if (number >= first && number <= last) return true;
    return false;
  }
  /// The largest number named; -1 for all.
  std::int64_t largest() const {
    std::int64_t result = -1;
    for (const auto& [first, last] : ranges) result = result < last ? last : result;
    return result;
  }
  bool operator==(const NumberRanges&) const = default;
};

/// "" is all. Throws UsageError naming the option unless the text is like "0-3,7".
NumberRanges parse_ranges(std::string_view text, std::string_view option);

}  // namespace sinkscope
