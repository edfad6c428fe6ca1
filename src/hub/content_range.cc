#include "hub/content_range.h"

#include <charconv>

namespace sinkscope {
namespace {

// Takes a number and the character after it (none for '\0') off the front.
std::optional<std::uint64_t> take_number(std::string_view& text, char after) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (after == '\0') return text.empty() ? std::optional(number) : std::nullopt;
  if (!text.starts_with(after)) return std::nullopt;
  text.remove_prefix(1);
  return number;
}

}  // namespace

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view unit = "bytes ";
  if (!text.starts_with(unit)) return std::nullopt;
  text.remove_prefix(unit.size());
  const auto first = take_number(text, '-');
  const auto last = first ? take_number(text, '/') : std::nullopt;
  if (!last || *last < *first) return std::nullopt;
  ContentRange range{.first = *first, .last = *last, .total = {}};
  if (text == "*") return range;
  range.total = take_number(text, '\0');
  if (!range.total || *range.total <= range.last) return std::nullopt;
  return range;
}

}  // namespace sinkscope
