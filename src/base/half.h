// IEEE 754 binary16, by bits: the compiler's own type differs between the compilers and processors we build
// for.
#pragma once

#include <cstdint>

namespace sinkscope {

/// Rounded to nearest, ties to even; beyond 65504 infinity, NaN the positive quiet NaN.
std::uint16_t half_from_float(float value);

/// Exact.
float float_from_half(std::uint16_t half);

}  // namespace sinkscope
