// Root mean square layer normalisation with gradients, alone or behind a residual connection.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"

namespace sinkscope {

/// y = x / sqrt(mean(x^2) + eps) * weight over the last dimension. x [..., width], weight [width].
at::Tensor rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps);

struct AddedNorm {
  at::Tensor sum;     // x + update
  at::Tensor normed;  // rms_norm(sum)
};

/// A block's residual connection and the norm behind it in one pass, forward and backward: the gradient of x
/// and of update is dsum + the norm's. update has the shape of x.
AddedNorm add_rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& update,
                       const at::Tensor& weight, double eps);

}  // namespace sinkscope
