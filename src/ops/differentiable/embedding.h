#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"

namespace sinkscope {

/// Rows ids[n] of table [V, W], ids int64 [N] -> [N, W]. The gradient of a row is the sum over its n, in
/// their order.
at::Tensor embedding(Backend backend, const at::Tensor& table, const at::Tensor& ids);

}  // namespace sinkscope
