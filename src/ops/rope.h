// Rotary position embedding, half-split form: the vector's first half pairs with its second half.
#pragma once

#include <ATen/core/Tensor.h>

namespace sinkscope {

/// Cosines and sines, each float32 [positions, head_dim / 2].
struct RopeTable {
  at::Tensor cosine;
  at::Tensor sine;
};

/// angle(p, i) = p / theta^(2i / head_dim), all in float32, as LLaDA's code computes it.
RopeTable rope_table(std::int64_t positions, std::int64_t head_dim, double theta, const at::Device& device);

/// x [N, heads, head_dim] rotated in float32 and cast back (LLaDA's rope_full_precision), in libtorch's
/// operations; on the CPU it is part of project() (projection.h). positions int64 [N]: the position of each
/// of the N tokens in its own sequence.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table, const at::Tensor& positions);

}  // namespace sinkscope
