// Storage values as float32 and back, for the sources that are compiled once per instruction set
// (cmake/rooms.cmake); each of them has its own copy of everything here.
#pragma once

#include <cstdint>

#include "ops/bfloat16.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

inline float load(const float* p) { return *p; }
inline float load(const Bfloat16* p) {
  const std::uint32_t bits = static_cast<std::uint32_t>(p->bits) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

inline void store(float* p, float value) { *p = value; }
inline void store(Bfloat16* p, float value) {
  std::uint32_t bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t quiet_nan = (bits >> 16) | 0x40u;
  const bool is_nan = (bits & 0x7FFFFFFFu) > 0x7F800000u;
  p->bits = static_cast<std::uint16_t>(is_nan ? quiet_nan : rounded);
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
