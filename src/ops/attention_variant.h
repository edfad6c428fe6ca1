// Variants of attention in libtorch's operations, for any device and with gradients: what training, the
// forward pass and the measurements of a variant have in common.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/attention_variant.h>

namespace sinkscope {

/// What a layer has learnt for its variant; undefined where the variant has none of it.
struct AttentionVariantWeights {
  at::Tensor slot_key;               // [KV or 1, head_dim]
  at::Tensor slot_value;             // likewise
  at::Tensor value_bias;             // [H, head_dim]
  at::Tensor relative_bias;          // [H, relative_buckets]
  at::Tensor kernel_in, kernel_out;  // [head_dim, head_dim]: W1, W2 of the MLP kernel
};

/// A layer's variant: what it is, and its weights. Both outlive the use.
struct VariantOfLayer {
  const AttentionVariant* variant = nullptr;
  const AttentionVariantWeights* weights = nullptr;
};

/// The slot's key [KV or 1, head_dim] of the `learnt` coordinates [KV or 1, slot_dims].
at::Tensor slot_key(const at::Tensor& learnt, std::int64_t head_dim);
/// The fixed value [1, head_dim] of a key_bias slot.
at::Tensor fixed_slot_value(const AttentionVariant& variant, std::int64_t head_dim,
                            const at::TensorOptions& options);

/// 1 if there is a slot, else 0: columns in front of the keys' in what follows.
std::int64_t slot_columns(const AttentionVariant& variant);

/// k [..., H, K, head_dim] with the slot's key in front of each head, [..., H, slot + K, head_dim]; H is a
/// multiple of the slot's heads. Likewise values.
at::Tensor with_slot(const at::Tensor& rows, const at::Tensor& slot);

/// Similarities before exp, sigmoid or elu are taken, or the kernel's own. q [..., H, R, head_dim], k
/// [..., H, slot + K, head_dim]; positions int64 [R] and [K]; `causal` says how far apart two positions are:
/// T5's buckets and ALiBi count distances to the left only. -> [..., H, R, slot + K].
at::Tensor variant_scores(const VariantOfLayer& layer, const at::Tensor& q, const at::Tensor& k,
                          const at::Tensor& query_positions, const at::Tensor& key_positions, bool causal);

struct VariantRows {
  at::Tensor used;  ///< what the values are weighted with
  at::Tensor
      shares;  ///< the same as attention that sums to 1: `used` where it does, else |used| / (sum + 1e-8)
};

/// Rows over the columns that are not `hidden` (bool, broadcast to scores; undefined: none). A row without
/// any is zero.
VariantRows variant_rows(const AttentionVariant& variant, const at::Tensor& scores, const at::Tensor& hidden);

/// T5's bucket of query position i and key position j: of d = i - j (0 where j is behind), d itself below 16,
/// then min(31, 16 + floor(16 ln(d / 16) / ln(128 / 16))). Bidirectional: 16 buckets for each side in the
/// same way (8 exact), those of keys behind the query from 16 on. -> int64 [R, K]
at::Tensor relative_buckets_of(const at::Tensor& query_positions, const at::Tensor& key_positions,
                               bool causal);

/// ALiBi's slopes, 2^(-8 h / H), h = 1 .. H; where H is no power of two those of the next lower power, then
/// every other one of twice that. -> [H]
at::Tensor alibi_slopes(std::int64_t heads, const at::TensorOptions& options);

/// Rows of PositionEncoding::sinusoid, float32 [positions, width]: sines in the first half of the columns.
at::Tensor sinusoid_table(std::int64_t positions, std::int64_t width);

}  // namespace sinkscope
