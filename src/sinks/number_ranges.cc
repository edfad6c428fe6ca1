#include <sinkscope/error.h>
#include <sinkscope/number_ranges.h>

#include <charconv>

namespace sinkscope {

NumberRanges parse_ranges(std::string_view text, std::string_view option) {
  NumberRanges parsed;
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const auto refuse = [&] {
    throw UsageError("{} \"{}\" is not of the form N or N-M, several joined by commas, as in 0-3,7", option,
                     text);
  };
  while (at != end) {
    std::pair<std::int64_t, std::int64_t> range{-1, -1};
    const auto first = std::from_chars(at, end, range.first);
    if (first.ec != std::errc() || range.first < 0) refuse();
    at = first.ptr;
    range.second = range.first;
    if (at != end && *at == '-') {
      const auto last = std::from_chars(at + 1, end, range.second);
      if (last.ec != std::errc() || range.second < range.first) refuse();
      at = last.ptr;
    }
    parsed.ranges.push_back(range);
    if (at == end) break;
    if (*at != ',' || at + 1 == end) refuse();
    ++at;
  }
  return parsed;
}

}  // namespace sinkscope
