#include "model/sink_token.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include "ops/rms_norm.h"

namespace sinkscope {
namespace {

at::Tensor product(const Linear& linear, const at::Tensor& x) { return at::linear(x, linear.weight()); }

at::Tensor feed_forward(const MlpWeights& mlp, const at::Tensor& x) {
  return product(mlp.down, at::silu(product(mlp.gate, x)) * product(mlp.up, x));
}

}  // namespace

void place_sink_token(const at::Tensor& token, const ModelConfig& config, TransformerWeights& weights) {
  const bool post = config.attention.post_norm;
  at::Tensor x = token.unsqueeze(0);  // [1, width]
  for (BlockWeights& block : weights.blocks) {
    const auto normed = [&](const at::Tensor& norm) { return rms_norm(x, norm, config.norm_eps); };
    const auto add = [&](const at::Tensor& change, const at::Tensor& norm) {
      x = x + change;
      if (post) x = normed(norm);
    };
    const at::Tensor h = post ? x : normed(block.attention_norm);
    const at::Tensor value = product(block.value, h).view({config.kv_heads, config.head_dim});
    block.variant.slot_key = product(block.key, h).view({config.kv_heads, config.head_dim}).to(at::kFloat);
    block.variant.slot_value = value.to(at::kFloat);
    // Its attention is 1 to itself; each key head serves a group of query heads.
    at::Tensor seen = value.repeat_interleave(config.heads / config.kv_heads, 0) * config.attention.scale;
    if (block.variant.value_bias.defined()) seen = seen + block.variant.value_bias.to(seen.scalar_type());
    add(product(block.attention_out, seen.reshape({1, -1})), block.attention_norm);
    add(feed_forward(block.mlp, post ? x : normed(block.mlp_norm)), block.mlp_norm);
  }
}

}  // namespace sinkscope
