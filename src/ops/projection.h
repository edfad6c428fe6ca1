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

/// RMS norm of each head (Qwen3, LLaDA-MoE); weight [head_dim].
struct HeadNorm {
  const at::Tensor* weight;
  double eps;
};

struct Projection {
  const Linear* linear;
  at::Tensor* result;                  // [N, out]; made by the caller on the cpu backend
  const Rotation* rotation = nullptr;  // null: none
  const at::Tensor* bias = nullptr;    // [out]; null: none
  const HeadNorm* norm = nullptr;      // null: none; heads are as wide as the weight
};

/// result = rotation(norm(x W^T + bias)) for all of them, with what is given; every step cast to the dtype.
/// One backend, one form of input. Rotations and norms need weights cut in granules of a head's width.
void project(const std::vector<Projection>& projections, const ProductInput& x, const RowPlan& rows);

/// residual += x W^T + bias, product and biased product cast to the dtype first. residual [N, out]; bias
/// [out] or null.
void project_add(const Linear& linear, const at::Tensor* bias, const ProductInput& x, const RowPlan& rows,
                 at::Tensor& residual);

/// result = cast(silu(x gate^T)) * (x up^T), SiLU(x) = x / (1 + e^-x); both products and the SiLU cast to the
/// dtype. result [N, out], made by the caller on the cpu backend.
void project_gated(const Linear& gate, const Linear& up, const ProductInput& x, const RowPlan& rows,
                   at::Tensor& result);

}  // namespace sinkscope
