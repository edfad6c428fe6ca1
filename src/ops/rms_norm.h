// Root mean square layer normalisation.
#pragma once

#include "ops/backend.h"

namespace sinkscope {

/// y = cast(x / sqrt(mean(x^2) + eps)) * weight over the last dimension. x [N, width], weight [width], both
/// in the same dtype; statistics in float32, the normalised value cast to that dtype before the product with
/// the weight.
at::Tensor rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace sinkscope
