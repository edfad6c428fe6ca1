// Numbers of the zip format that writing and reading share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sinkscope::zip {

constexpr std::uint32_t local_signature = 0x04034b50;
constexpr std::uint32_t central_signature = 0x02014b50;
constexpr std::uint32_t end_signature = 0x06054b50;
constexpr std::uint32_t end64_signature = 0x06064b50;
constexpr std::uint32_t locator_signature = 0x07064b50;

// Lengths of the records without their variable parts.
constexpr std::size_t local_size = 30;
constexpr std::size_t central_size = 46;
constexpr std::size_t end_size = 22;
constexpr std::size_t end64_size = 56;
constexpr std::size_t locator_size = 20;

constexpr std::uint16_t method_stored = 0;
constexpr std::uint16_t method_deflated = 8;
constexpr std::uint16_t flag_encrypted = 1;

// Extra field with 64-bit values; a 32-bit (16-bit) field of all ones says that its value stands there.
constexpr std::uint16_t extra64_id = 1;
constexpr std::uint32_t in_extra32 = 0xffffffff;
constexpr std::uint16_t in_extra16 = 0xffff;

}  // namespace sinkscope::zip
