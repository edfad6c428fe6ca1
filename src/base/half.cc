#include "base/half.h"

#include <bit>

namespace sinkscope {
namespace {

// Exponent biases: 127 for float32, 15 for binary16; significands of 23 and 10 stored bits.
constexpr int bias_difference = 127 - 15;
constexpr int dropped_bits = 23 - 10;
constexpr std::uint32_t float_infinity = 0x7f800000;
constexpr std::uint32_t smallest_normal = (bias_difference + 1) << 23;  // 2^-14
constexpr std::uint32_t rounds_to_infinity = 0x477ff000;  // 65520, halfway between 65504 and 65536
constexpr std::uint32_t half_infinity = 0x7c00;

// `bits` shifted right by `shift` >= 1, rounded to nearest, ties to even.
std::uint32_t shift_rounded(std::uint32_t bits, int shift) {
  const std::uint32_t kept = bits >> shift;
  const std::uint32_t rest = bits & ((std::uint32_t{1} << shift) - 1);
  const std::uint32_t half_way = std::uint32_t{1} << (shift - 1);
  return kept + (rest > half_way || (rest == half_way && (kept & 1) != 0) ? 1 : 0);
}

}  // namespace

std::uint16_t half_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000;
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > float_infinity) return 0x7e00;
  if (magnitude >= rounds_to_infinity) return static_cast<std::uint16_t>(sign | half_infinity);
  if (magnitude >= smallest_normal) {
    // A carry out of the significand raises the exponent, which is what rounding up asks for.
    const std::uint32_t half = shift_rounded(magnitude, dropped_bits) - (bias_difference << 10);
    return static_cast<std::uint16_t>(sign | half);
  }
  // Subnormal: the significand with its leading one, in units of 2^-24.
  const int exponent = static_cast<int>(magnitude >> 23);
  const int shift = dropped_bits + bias_difference + 1 - exponent;
  if (exponent == 0 || shift > 24) return static_cast<std::uint16_t>(sign);
  const std::uint32_t significand = (magnitude & 0x7fffff) | 0x800000;
  return static_cast<std::uint16_t>(sign | shift_rounded(significand, shift));
}

float float_from_half(std::uint16_t half) {
  const std::uint32_t sign = std::uint32_t{half & 0x8000U} << 16;
  const std::uint32_t magnitude = half & 0x7fffU;
  if (magnitude >= half_infinity)
    return std::bit_cast<float>(sign | float_infinity | ((magnitude & 0x3ff) << dropped_bits));
  if (magnitude < 0x400) {
    const float value = static_cast<float>(magnitude) * 0x1p-24F;
    return sign == 0 ? value : -value;
  }
  return std::bit_cast<float>(sign | ((magnitude << dropped_bits) + (std::uint32_t{bias_difference} << 23)));
}

}  // namespace sinkscope
