// Attention with gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"
#include "ops/differentiable/attention_mask.h"
#include "ops/differentiable/matrix_product.h"

namespace sinkscope {

/// softmax(scale q k^T + mask) v over the positions of each of B sequences. q [B, T, H, D], k and v [B, T,
/// KV, D], H a multiple of KV (each key head serves H / KV consecutive query heads). -> [B, T, H, D].
///
/// On Backend::cpu the scores never exist as a whole: the forward pass keeps the output and the logarithm of
/// each row's sum, from which the backward pass makes the probabilities P again, tile by tile:
///   dV = P^T dO, dP = dO V^T, dS = scale P (dP - rowsum(dO O)), dQ = dS K, dK = dS^T Q.
/// The factors of all products (q, k, v, P, dO, dS) are rounded to the precision, sums and softmax are
/// float32. Backend::aten computes in the dtype of q, whatever the precision.
at::Tensor attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     double scale, const AttentionMask& mask, ProductPrecision precision);

}  // namespace sinkscope
