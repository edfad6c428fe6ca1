// Rotary position embedding, half-split form: the vector's first half pairs with its second half.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/model_config.h>

#include <optional>

namespace sinkscope {

struct RopeOptions {
  std::int64_t head_dim = 0;
  double theta = 0;
  double factor = 1;  // positions are divided by it
  std::optional<Llama3Scaling> llama3 = std::nullopt;
  /// The dtype of the rotation's arithmetic. LLaDA rotates in float32 whatever the model's dtype; Hugging
  /// Face's code casts cosines and sines to the model's dtype and rounds every product and sum to it.
  at::ScalarType arithmetic = at::kFloat;

  bool operator==(const RopeOptions&) const = default;
};

/// Cosines and sines, each float32 [positions, head_dim / 2], rounded to the dtype of the rotation.
struct RopeTable {
  at::Tensor cosine;
  at::Tensor sine;
  at::ScalarType arithmetic = at::kFloat;

  std::int64_t positions() const { return cosine.defined() ? cosine.size(0) : 0; }
};

/// angle(p, i) = p f_i, f_i = 1 / theta^(2i / head_dim) / factor, all in float32, as the checkpoints' own
/// code computes it. With Llama 3.1's scaling, w = 2 pi / f and n the original number of positions: f stays
/// where w < n / high, becomes f / factor where w > n / low, and between them (1 - s) f / factor + s f with s
/// = (n / w - low) / (high - low).
RopeTable rope_table(std::int64_t positions, const RopeOptions& options, const at::Device& device);

/// x [N, heads, head_dim] rotated and cast back, in libtorch's operations; on the CPU it is part of project()
/// (projection.h). positions int64 [N]: the position of each of the N tokens in its own sequence.
at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table, const at::Tensor& positions);

}  // namespace sinkscope
