#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"

namespace sinkscope {

/// y = silu(gate) up with silu(g) = g / (1 + e^-g); all of one shape. The backward pass computes silu again
/// from what it is given: dgate = dy up s (1 + g (1 - s)) with s = 1 / (1 + e^-g), dup = dy silu(gate).
at::Tensor swiglu(Backend backend, const at::Tensor& gate, const at::Tensor& up);

}  // namespace sinkscope
