#pragma once

#include "ops/backend.h"

namespace sinkscope {

/// L2 norm over the last dimension in float32. x [..., width] contiguous -> float32 [...] on the CPU.
at::Tensor l2_norm(Backend backend, const at::Tensor& x);

}  // namespace sinkscope
