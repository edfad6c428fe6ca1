// Root mean square layer normalisation in libtorch's operations. On the CPU it is part of prepare_normed
// (product_input.h).
#pragma once

#include <ATen/core/Tensor.h>

namespace sinkscope {

/// cast(x / sqrt(mean(x^2) + eps)) * weight over the last dimension; statistics in float32, the cast is to
/// the dtype of x. x [N, width], weight [width].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace sinkscope
