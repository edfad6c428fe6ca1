// The small pieces between the matrix products.
#pragma once

#include "ops/backend.h"

namespace sinkscope {

/// cast(silu(gate)) * up, SiLU(x) = x / (1 + e^-x); both steps cast to the dtype. Same shapes; gate is
/// overwritten.
at::Tensor silu_multiply(Backend backend, at::Tensor gate, const at::Tensor& up);

/// x += y in place, in the dtype of x. Same shapes.
void add_in_place(Backend backend, at::Tensor& x, const at::Tensor& y);

/// L2 norm over the last dimension in float32. x [..., width] -> float32 [...] on the CPU.
at::Tensor l2_norm(Backend backend, const at::Tensor& x);

}  // namespace sinkscope
