// Rotary position embedding, half-split form: the vector's first half pairs with its second half.
#pragma once

#include "ops/backend.h"

namespace sinkscope {

/// Cosines and sines, each float32 [positions, head_dim / 2].
struct RopeTable {
  at::Tensor cosine;
  at::Tensor sine;
};

/// angle(p, i) = p / theta^(2i / head_dim), all in float32, as LLaDA's code computes it.
RopeTable rope_table(std::int64_t positions, std::int64_t head_dim, double theta, const at::Device& device);

/// Rotates x in place, in float32, and casts back (LLaDA's rope_full_precision). x [N, heads, head_dim]
/// contiguous; positions int64 [N] on the CPU: the position of each of the N tokens in its own row.
void apply_rope(Backend backend, at::Tensor& x, const RopeTable& table, const at::Tensor& positions);

}  // namespace sinkscope
