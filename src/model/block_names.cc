#include "model/block_names.h"

namespace sinkscope {
namespace {

// Mind that `ff_out` is both a block's down projection and the output matrix.
BlockNames olmo_block(std::int64_t layer) {
  const std::string block = "model.transformer.blocks." + std::to_string(layer) + ".";
  BlockNames names;
  names.attention_norm = block + "attn_norm.weight";
  names.query = block + "q_proj.weight";
  names.key = block + "k_proj.weight";
  names.value = block + "v_proj.weight";
  names.attention_out = block + "attn_out.weight";
  names.mlp_norm = block + "ff_norm.weight";
  names.gate = block + "ff_proj.weight";
  names.up = block + "up_proj.weight";
  names.down = block + "ff_out.weight";
  return names;
}

BlockNames llama_block(const ModelConfig& config, std::int64_t layer) {
  const std::string block = "model.layers." + std::to_string(layer) + ".";
  const std::string attention = block + "self_attn.";
  BlockNames names;
  names.attention_norm = block + "input_layernorm.weight";
  names.query = attention + "q_proj.weight";
  names.key = attention + "k_proj.weight";
  names.value = attention + "v_proj.weight";
  names.attention_out = attention + "o_proj.weight";
  if (config.qkv_bias) {
    names.query_bias = attention + "q_proj.bias";
    names.key_bias = attention + "k_proj.bias";
    names.value_bias = attention + "v_proj.bias";
  }
  if (config.output_bias) names.output_bias = attention + "o_proj.bias";
  if (config.qk_norm) {
    names.query_norm = attention + "q_norm.weight";
    names.key_norm = attention + "k_norm.weight";
  }
  names.mlp_norm = block + "post_attention_layernorm.weight";
  if (config.experts) {
    names.router = block + "mlp.gate.weight";
    if (!config.experts->selection_bias.empty())
      names.selection_bias = block + config.experts->selection_bias;
    names.experts = block + "mlp.experts.";
  } else {
    names.gate = block + "mlp.gate_proj.weight";
    names.up = block + "mlp.up_proj.weight";
    names.down = block + "mlp.down_proj.weight";
  }
  return names;
}

}  // namespace

BlockNames block_names(const ModelConfig& config, std::int64_t layer) {
  return config.names == TensorNames::olmo ? olmo_block(layer) : llama_block(config, layer);
}

ExpertNames expert_names(const BlockNames& block, std::int64_t expert) {
  const std::string one = block.experts + std::to_string(expert) + ".";
  return {one + "gate_proj.weight", one + "up_proj.weight", one + "down_proj.weight"};
}

OuterNames outer_names(const ModelConfig& config) {
  if (config.names == TensorNames::olmo)
    return {"model.transformer.wte.weight", "model.transformer.ln_f.weight",
            "model.transformer.ff_out.weight"};
  return {"model.embed_tokens.weight", "model.norm.weight", "lm_head.weight"};
}

}  // namespace sinkscope
