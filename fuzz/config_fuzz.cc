// config.json and generation_config.json (the same text for both) against the tensors of a model of one tiny
// block, named in the way of LLaDA or of Llama.
#include <sinkscope/error.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "checkpoint/read_config.h"

namespace {

using Shapes = std::map<std::string, std::vector<std::int64_t>>;

sinkscope::TensorMap tensors_of(const Shapes& shapes) {
  sinkscope::TensorMap tensors;
  for (const auto& [name, shape] : shapes) tensors[name] = {sinkscope::DType::bf16, shape, {}};
  return tensors;
}

sinkscope::TensorMap olmo_tensors() {
  const std::string block = "model.transformer.blocks.0.";
  return tensors_of({{"model.transformer.wte.weight", {12, 8}},
                     {"model.transformer.ff_out.weight", {12, 8}},
                     {"model.transformer.ln_f.weight", {8}},
                     {block + "attn_norm.weight", {8}},
                     {block + "q_proj.weight", {8, 8}},
                     {block + "k_proj.weight", {4, 8}},
                     {block + "v_proj.weight", {4, 8}},
                     {block + "attn_out.weight", {8, 8}},
                     {block + "ff_norm.weight", {8}},
                     {block + "ff_proj.weight", {16, 8}},
                     {block + "up_proj.weight", {16, 8}},
                     {block + "ff_out.weight", {8, 16}}});
}

sinkscope::TensorMap llama_tensors() {
  const std::string block = "model.layers.0.";
  return tensors_of({{"model.embed_tokens.weight", {12, 8}},
                     {"lm_head.weight", {12, 8}},
                     {"model.norm.weight", {8}},
                     {block + "input_layernorm.weight", {8}},
                     {block + "self_attn.q_proj.weight", {8, 8}},
                     {block + "self_attn.k_proj.weight", {4, 8}},
                     {block + "self_attn.v_proj.weight", {4, 8}},
                     {block + "self_attn.o_proj.weight", {8, 8}},
                     {block + "post_attention_layernorm.weight", {8}},
                     {block + "mlp.gate_proj.weight", {16, 8}},
                     {block + "mlp.up_proj.weight", {16, 8}},
                     {block + "mlp.down_proj.weight", {8, 16}}});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sinkscope::TensorMap olmo = olmo_tensors(), llama = llama_tensors();
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const sinkscope::TensorMap& tensors = text.find("hidden_size") < text.size() ? llama : olmo;
    const sinkscope::Json json = sinkscope::parse_json(text, "config.json");
    const sinkscope::ModelConfig config = sinkscope::read_model_config(json, json, tensors, "DIR");
    if (config.heads % config.kv_heads != 0 || config.head_dim * config.heads != config.width) std::abort();
    if (config.mask_id && *config.mask_id >= config.embedding_rows) std::abort();
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
