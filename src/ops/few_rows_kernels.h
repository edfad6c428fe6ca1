// Products with a few rows, which are bound by how fast the weight comes from memory. Compiled once per
// instruction set from few_rows_kernels.cc.
#pragma once

#include <cstdint>

#include "ops/bfloat16.h"

namespace sinkscope {

/// More rows are better off with oneDNN's products.
inline constexpr std::int64_t most_few_rows = 4;
inline constexpr std::int64_t few_rows_panel = 64;  // columns

/// sums [rows, panels * 64] in float32 = x [rows, inner] times a weight in panels of 64 columns,
/// [panel][inner / 2][64][2]: neighbours along the summed axis lie side by side. rows <= most_few_rows, inner
/// even.
using FewRowsKernel = void (*)(const Bfloat16* x, std::int64_t rows, std::int64_t inner,
                               const Bfloat16* weight, std::int64_t panels, float* sums);

}  // namespace sinkscope
