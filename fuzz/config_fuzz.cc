// config.json and generation_config.json (the same text for both) against the tensors of a model of one tiny
// block.
#include <sinkscope/error.h>

#include <cstdint>
#include <cstdlib>

#include "base/json.h"
#include "checkpoint/read_config.h"

namespace {

sinkscope::TensorMap tiny_tensors() {
  sinkscope::TensorMap tensors;
  const auto add = [&](const char* name, std::vector<std::int64_t> shape) {
    tensors[name] = {sinkscope::DType::bf16, std::move(shape), {}};
  };
  add("model.transformer.wte.weight", {12, 8});
  add("model.transformer.ff_out.weight", {12, 8});
  add("model.transformer.ln_f.weight", {8});
  add("model.transformer.blocks.0.attn_norm.weight", {8});
  add("model.transformer.blocks.0.q_proj.weight", {8, 8});
  add("model.transformer.blocks.0.k_proj.weight", {4, 8});
  add("model.transformer.blocks.0.v_proj.weight", {4, 8});
  add("model.transformer.blocks.0.attn_out.weight", {8, 8});
  add("model.transformer.blocks.0.ff_norm.weight", {8});
  add("model.transformer.blocks.0.ff_proj.weight", {16, 8});
  add("model.transformer.blocks.0.up_proj.weight", {16, 8});
  add("model.transformer.blocks.0.ff_out.weight", {8, 16});
  return tensors;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sinkscope::TensorMap tensors = tiny_tensors();
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const sinkscope::Json json = sinkscope::parse_json(text, "config.json");
    const sinkscope::ModelConfig config = sinkscope::read_model_config(json, json, tensors, "DIR");
    if (config.heads % config.kv_heads != 0 || config.head_dim * config.heads != config.width) std::abort();
    if (config.mask_id && *config.mask_id >= config.embedding_rows) std::abort();
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
