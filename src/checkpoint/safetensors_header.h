// The layout of a safetensors file: 8 bytes little-endian header length, a JSON header, the tensors' bytes.
#pragma once

#include <sinkscope/safetensors.h>

#include <cstddef>
#include <map>
#include <span>
#include <string>

namespace sinkscope {

/// The format's own cap on the header, in bytes.
inline constexpr std::uint64_t safetensors_header_cap = 100'000'000;

struct SafetensorsHeader {
  std::map<std::string, TensorView, std::less<>> tensors;  // views into the parsed span
  std::map<std::string, std::string> metadata;
};

/// Checks and reads the header at the start of a whole file. Every view lies inside `file`, all views
/// together cover its data section exactly once. `name` names the file in the Error thrown for anything the
/// format does not allow.
SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file, const std::string& name);

}  // namespace sinkscope
