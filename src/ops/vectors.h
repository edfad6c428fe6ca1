// Vectors as wide as the instruction set's registers, for the sources that are compiled once per instruction
// set (cmake/rooms.cmake); each of them has its own copy of everything here.
#pragma once

#include <cstdint>

#include "ops/bfloat16.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
constexpr int vector_lanes = vector_bytes / 4;

using Vector = float __attribute__((vector_size(vector_bytes)));
using Words = std::uint32_t __attribute__((vector_size(vector_bytes)));
using Quad = std::uint32_t __attribute__((vector_size(16)));

// Loads and stores of any 32-bit elements at any address.
template <typename V, typename Element>
inline V load_vector(const Element* from) {
  static_assert(sizeof(Element) == 4);
  V value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}

template <typename V, typename Element>
inline void store_vector(Element* to, V value) {
  static_assert(sizeof(Element) == 4);
  __builtin_memcpy(to, &value, sizeof value);
}

inline Vector broadcast(float value) { return value - Vector{}; }
inline Words broadcast(std::uint32_t value) { return value + Words{}; }

// Bit patterns and the numbers they stand for.
inline Words bits_of(Vector value) { return reinterpret_cast<Words>(value); }
inline Vector number_of(Words bits) { return reinterpret_cast<Vector>(bits); }

inline Vector larger(Vector a, Vector b) { return a > b ? a : b; }  // b where one of them is NaN

inline float sum_lanes(Vector v) {
  float lanes[vector_lanes];
  store_vector(lanes, v);
  for (int width = vector_lanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  return lanes[0];
}

inline float largest_lane(Vector v) {
  float lanes[vector_lanes];
  store_vector(lanes, v);
  float best = lanes[0];
  for (int i = 1; i < vector_lanes; ++i) best = lanes[i] > best ? lanes[i] : best;
  return best;
}

constexpr float lowest_power = -127.0F;

// 2^t for lowest_power <= t <= 127; exactly 1 at 0 and exactly 0 at lowest_power. The polynomial is the
// degree-6 fit of 2^f on |f| <= 1/2 with the smallest largest relative error (3e-9) among those that are 1 at
// 0; with the roundings of Horner's scheme the result errs by less than 1.5e-7.
inline Vector power_of_two(Vector t) {
  const Vector round_to_integer = broadcast(12582912.0F);  // 1.5 * 2^23: adding it drops the fraction
  const Vector shifted = t + round_to_integer;
  const Vector f = t - (shifted - round_to_integer);
  Vector p = broadcast(0.00015594677824992687F);
  p = p * f + 0.0013406643411144614F;
  p = p * f + 0.009617692790925503F;
  p = p * f + 0.055503103882074356F;
  p = p * f + 0.24022652208805084F;
  p = p * f + 0.6931472420692444F;
  p = p * f + 1.0F;
  // The low bits of `shifted` are the integer part; the shift moves them to the exponent and everything else
  // out.
  return number_of(bits_of(p) + (bits_of(shifted) << 23));
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
