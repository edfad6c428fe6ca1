#include "checkpoint/shapes.h"

#include <sinkscope/error.h>

#include <cmath>

#include "checkpoint/families.h"
#include "checkpoint/message.h"
#include "checkpoint/olmo_config.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The name PyTorch's type has in config.json.
std::string_view torch_name(DType dtype) {
  return dtype == DType::f32 ? "float32" : dtype == DType::f16 ? "float16" : "bfloat16";
}

OrderedJson llada_json(const ModelConfig& c) {
  return {{"architectures", {c.architecture}},
          {"model_type", family_name(c.family)},
          {"d_model", c.width},
          {"n_layers", c.layers},
          {"n_heads", c.heads},
          {"n_kv_heads", c.kv_heads},
          {"mlp_hidden_size", c.mlp_width},
          {"mlp_ratio", 4},
          {"activation_type", "silu"},
          {"block_type", "llama"},
          {"block_group_size", 1},
          {"vocab_size", c.head_rows},
          {"embedding_size", c.embedding_rows},
          {"rope", true},
          {"rope_theta", c.rope_theta},
          {"rope_full_precision", true},
          {"rms_norm_eps", c.norm_eps},
          {"layer_norm_type", "rms"},
          {"layer_norm_with_affine", true},
          {"bias_for_layer_norm", false},
          {"include_bias", false},
          {"include_qkv_bias", false},
          {"attention_layer_norm", false},
          {"weight_tying", c.tied_head},
          {"scale_logits", false},
          {"input_emb_norm", false},
          {"alibi", false},
          {"multi_query_attention", nullptr},
          {"flash_attention", false},
          {"max_sequence_length", c.max_positions},
          {"precision", "amp_bf16"},
          {"mask_token_id", *c.mask_id},
          {"eos_token_id", *c.eos_id()},
          {"pad_token_id", *c.pad_id},
          {"use_cache", false},
          {"attention_dropout", 0.0},
          {"embedding_dropout", 0.0},
          {"residual_dropout", 0.0},
          {"init_device", "meta"},
          {"torch_dtype", torch_name(c.weights_dtype)},
          {"transformers_version", "4.46.3"}};
}

// MMaDA adds the image tokens of its codebook behind LLaDA's vocabulary.
OrderedJson mmada_json(const ModelConfig& c) {
  constexpr std::int64_t codebook = 8192;
  OrderedJson json = llada_json(c);
  json["new_vocab_size"] = c.head_rows;
  json["llm_vocab_size"] = c.head_rows - codebook;
  json["codebook_size"] = codebook;
  json["num_vq_tokens"] = 1024;
  json["num_new_special_tokens"] = 0;
  json["tie_word_embeddings"] = c.tied_head;
  return json;
}

OrderedJson generation_json(const ModelConfig& c) {
  return {{"bos_token_id", *c.bos_id}, {"eos_token_id", *c.eos_id()}};
}

// GPT-2's initialisation: deviation 0.02, and the matrices that write into the residual stream scaled down by
// the number of such writes, so that the stream stays of one size however deep the model is.
std::vector<RandomTensor> olmo_weights(const ModelConfig& config) {
  constexpr double deviation = 0.02;
  const double into_residual = deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  std::vector<RandomTensor> weights;
  for (const ExpectedTensor& tensor : olmo_tensors(config)) {
    const bool is_norm = tensor.shape.size() == 1;
    const bool writes = tensor.name.ends_with(".attn_out.weight") ||
                        (tensor.name.ends_with(".ff_out.weight") && tensor.name != olmo_head);
    weights.push_back({tensor.name, tensor.shape, is_norm ? 1.0 : 0.0,
                       is_norm  ? 0.0
                       : writes ? into_residual
                                : deviation});
  }
  return weights;
}

struct Sizes {
  std::int64_t layers, heads, width, mlp_width, vocabulary;
};
struct Ids {
  std::int64_t mask, eos, bos;  // the pad token is the end token
};

ModelConfig olmo_model(Family family, std::string architecture, const Sizes& sizes, const Ids& ids) {
  ModelConfig config;
  config.family = family;
  config.architecture = std::move(architecture);
  config.layers = sizes.layers;
  config.heads = config.kv_heads = sizes.heads;
  config.head_dim = sizes.width / sizes.heads;
  config.width = sizes.width;
  config.mlp_width = sizes.mlp_width;
  config.embedding_rows = config.head_rows = sizes.vocabulary;
  config.rope_theta = 500000;
  config.norm_eps = 1e-5;
  config.max_positions = 4096;
  config.weights_dtype = DType::bf16;
  config.mask_id = ids.mask;
  config.pad_id = ids.eos;
  config.bos_id = ids.bos;
  config.eos_ids = {ids.eos};
  return config;
}

// One row a model; other families go here, with their own functions.
const std::vector<ModelShape>& table() {
  constexpr Ids llada_ids{126336, 126081, 126080};
  static const std::vector<ModelShape> rows = {
      {"llada-8b", olmo_model(Family::llada, "LLaDAModelLM", {32, 32, 4096, 12288, 126464}, llada_ids),
       llada_json, generation_json, olmo_weights},
      {"mmada-8b", olmo_model(Family::mmada, "MMadaModelLM", {32, 32, 4096, 12288, 134656}, llada_ids),
       mmada_json, generation_json, olmo_weights},
      // LLaDA's proportions in sizes for tests
      {"llada-small", olmo_model(Family::llada, "LLaDAModelLM", {8, 8, 512, 1536, 8192}, {8191, 8189, 8188}),
       llada_json, generation_json, olmo_weights},
      {"llada-tiny", olmo_model(Family::llada, "LLaDAModelLM", {2, 4, 64, 192, 512}, {511, 509, 508}),
       llada_json, generation_json, olmo_weights},
  };
  return rows;
}

}  // namespace

std::span<const ModelShape> model_shapes() { return table(); }

const ModelShape& model_shape(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelShape& shape : table()) {
    if (shape.name == name) return shape;
    names.emplace_back(shape.name);
  }
  throw UsageError("no shapes of a model {} are known here; known are {}", in_quotes(name), listed(names));
}

}  // namespace sinkscope
