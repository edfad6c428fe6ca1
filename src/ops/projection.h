// Matrix products with what follows them done while the result is still in the cache. Each has a plain
// version on the aten backend.
#pragma once

#include <vector>

#include "ops/linear.h"
#include "ops/rope.h"

namespace sinkscope {

/// Rotates the result's heads; positions int64 [N], the position of each row in its own sequence.
struct Rotation {
  const RopeTable* table;
  const at::Tensor* positions;
  std::int64_t head_dim;
};

struct Projection {
  const Linear* linear;
  at::Tensor* result;                  // [N, out]; made by the caller on the cpu backend
  const Rotation* rotation = nullptr;  // null: none
};

/// result = x W^T for all of them, rotated where asked for. One backend, one form of input. Rotations need
/// weights cut in granules of a head's width.
void project(const std::vector<Projection>& projections, const ProductInput& x, const RowPlan& rows);

/// residual += x W^T, the product cast to the dtype first. residual [N, out].
void project_add(const Linear& linear, const ProductInput& x, const RowPlan& rows, at::Tensor& residual);

/// result = cast(silu(x gate^T)) * (x up^T), SiLU(x) = x / (1 + e^-x); both products and the SiLU cast to the
/// dtype. result [N, out], made by the caller on the cpu backend.
void project_gated(const Linear& gate, const Linear& up, const ProductInput& x, const RowPlan& rows,
                   at::Tensor& result);

}  // namespace sinkscope
