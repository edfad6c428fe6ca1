#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"
#include "ops/rope.h"

namespace sinkscope {

/// Every head of x [B, T, heads, head_dim] rotated by its position, 0 to T - 1 in each of the B sequences, in
/// float32 and the pairing of ops/rope.h: (a, b) -> (a cos - b sin, b cos + a sin) for a in the first half
/// and b in the second. The table needs T positions. The backward pass is the rotation the other way round.
at::Tensor rope(Backend backend, const at::Tensor& x, const RopeTable& table);

}  // namespace sinkscope
