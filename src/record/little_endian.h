// Numbers in files: little endian, at any offset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace sinkscope {

/// The unsigned number of `size` bytes (at most 8) at `offset`; none where the text ends before.
inline std::optional<std::uint64_t> little_endian(std::string_view text, std::uint64_t offset,
                                                  std::size_t size) {
  if (offset > text.size() || text.size() - offset < size) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(text[static_cast<std::size_t>(offset) + i])} << (8 * i);
  return value;
}

template <typename Unsigned>
void append_little_endian(std::string& text, Unsigned value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    text.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xff));
}

}  // namespace sinkscope
