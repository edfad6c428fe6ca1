// A variant of attention with gradients.
#pragma once

#include "ops/attention_variant.h"
#include "ops/differentiable/attention_mask.h"

namespace sinkscope {

/// What variant_scores() and variant_rows() make of q [B, T, H, D], k and v [B, T, KV, D] and the layer's
/// weights, times v, plus the value bias: [B, T, H, D], in the dtype of q. In libtorch's operations, a few
/// sequences at a time: nothing of the size of the scores outlives them, the backward pass computes them
/// again.
at::Tensor attention_variant(const VariantOfLayer& layer, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const AttentionMask& mask);

}  // namespace sinkscope
