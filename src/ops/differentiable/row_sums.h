// Sums over rows in an order that the shape alone decides.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sinkscope {

/// sum of the rows of x: float32 [rows, width] contiguous (whatever its dimensions) -> [width]. In pieces of
/// 256 rows, each from the first row on, and then over the pieces.
at::Tensor sum_of_rows(const at::Tensor& x, std::int64_t rows, std::int64_t width);

}  // namespace sinkscope
