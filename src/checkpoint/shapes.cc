#include "checkpoint/shapes.h"

#include <sinkscope/error.h>

#include <cmath>

#include "checkpoint/attention_variant_config.h"
#include "checkpoint/families.h"
#include "checkpoint/llama_config.h"
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

// Models with another attention are of another type, lest other software takes them for the usual ones.
void add_variant(const ModelConfig& c, OrderedJson& json) {
  if (c.attention == AttentionVariant{}) return;
  json["model_type"] = fmt::format("sinkscope-{}", family_name(c.family));
  json[attention_variant_key] = attention_variant_json(c.attention);
}

OrderedJson llada_json(const ModelConfig& c) {
  OrderedJson json = {{"architectures", {c.architecture}},
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
                      {"rope", c.attention.positions == PositionEncoding::rope},
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
                      {"alibi", c.attention.positions == PositionEncoding::alibi},
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
  add_variant(c, json);
  return json;
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
  for (RandomTensor& tensor : variant_weights(config)) weights.push_back(std::move(tensor));
  return weights;
}

// The model_type that Hugging Face's code knows the family by.
std::string_view model_type(Family family) {
  switch (family) {
    case Family::dream:
      return "Dream";
    case Family::llada_moe:
      return "llada";
    default:
      return family_name(family);
  }
}

// Llama, Mistral, Qwen and Dream.
OrderedJson llama_json(const ModelConfig& c) {
  OrderedJson json = {{"architectures", {c.architecture}},
                      {"model_type", model_type(c.family)},
                      {"hidden_size", c.width},
                      {"num_hidden_layers", c.layers},
                      {"num_attention_heads", c.heads},
                      {"num_key_value_heads", c.kv_heads},
                      {"intermediate_size", c.mlp_width},
                      {"vocab_size", c.head_rows},
                      {"hidden_act", "silu"},
                      {"rope_theta", c.rope_theta},
                      {"rope_scaling", nullptr},
                      {"rms_norm_eps", c.norm_eps},
                      {"tie_word_embeddings", c.tied_head},
                      {"max_position_embeddings", c.max_positions},
                      {"attention_dropout", 0.0},
                      {"torch_dtype", torch_name(c.weights_dtype)}};
  if (c.head_dim * c.heads != c.width) json["head_dim"] = c.head_dim;
  if (c.llama3_scaling)
    json["rope_scaling"] = {
        {"rope_type", "llama3"},
        {"factor", c.llama3_scaling->factor},
        {"low_freq_factor", c.llama3_scaling->low_frequency_factor},
        {"high_freq_factor", c.llama3_scaling->high_frequency_factor},
        {"original_max_position_embeddings", std::llround(c.llama3_scaling->original_positions)}};
  if (c.family == Family::llama) json["attention_bias"] = c.qkv_bias;
  if (c.sliding_window > 0) json["sliding_window"] = c.sliding_window;
  if (c.mask_id) json["mask_token_id"] = *c.mask_id;
  if (c.pad_id) json["pad_token_id"] = *c.pad_id;
  json["bos_token_id"] = *c.bos_id;
  json["eos_token_id"] = *c.eos_id();
  add_variant(c, json);
  return json;
}

OrderedJson llada_moe_json(const ModelConfig& c) {
  OrderedJson json = llama_json(c);
  json.erase("intermediate_size");
  json["num_experts"] = c.experts->count;
  json["num_experts_per_tok"] = c.experts->chosen;
  json["expert_intermediate_size"] = c.mlp_width;
  json["norm_topk_prob"] = c.experts->normalised;
  json["moe_layer_freq"] = 1;
  json["qk_layernorm"] = c.qk_norm;
  json["attention_bias"] = c.qkv_bias;
  json["partial_rotary_factor"] = 1;
  return json;
}

// As olmo_weights(); biases are as large as weights.
std::vector<RandomTensor> llama_weights(const ModelConfig& config) {
  constexpr double deviation = 0.02;
  const double into_residual = deviation / std::sqrt(2.0 * static_cast<double>(config.layers));
  std::vector<RandomTensor> weights;
  for (const ExpectedTensor& tensor : llama_tensors(config)) {
    const bool is_norm = tensor.name.ends_with("norm.weight");
    const bool writes = tensor.name.ends_with(".o_proj.weight") || tensor.name.ends_with(".down_proj.weight");
    weights.push_back({tensor.name, tensor.shape, is_norm ? 1.0 : 0.0,
                       is_norm  ? 0.0
                       : writes ? into_residual
                                : deviation});
  }
  for (RandomTensor& tensor : variant_weights(config)) weights.push_back(std::move(tensor));
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

ModelConfig dream_7b() {
  ModelConfig config =
      olmo_model(Family::dream, "DreamModel", {28, 28, 3584, 18944, 152064}, {151666, 151643, 151643});
  config.names = TensorNames::llama;
  config.generation = Generation::shifted_masked;
  config.kv_heads = 4;
  config.rope_theta = 1e6;
  config.norm_eps = 1e-6;
  config.max_positions = 131072;
  config.qkv_bias = true;
  return config;
}

// Qwen2.5 has Dream's shapes.
ModelConfig qwen2_7b() {
  ModelConfig config = dream_7b();
  config.family = Family::qwen2;
  config.architecture = "Qwen2ForCausalLM";
  config.generation = Generation::autoregressive;
  config.mask_id.reset();
  config.pad_id.reset();
  return config;
}

ModelConfig llama_8b(const Sizes& sizes, std::int64_t kv_heads) {
  ModelConfig config = olmo_model(Family::llama, "LlamaForCausalLM", sizes, {0, 128001, 128000});
  config.names = TensorNames::llama;
  config.generation = Generation::autoregressive;
  config.kv_heads = kv_heads;
  config.max_positions = 131072;
  config.llama3_scaling = Llama3Scaling{8, 1, 4, 8192};
  config.mask_id.reset();
  config.pad_id.reset();
  return config;
}

ModelConfig llama_tiny() {
  ModelConfig config = llama_8b({2, 4, 64, 192, 512}, 2);
  config.bos_id = 508;
  config.eos_ids = {509};
  return config;
}

ModelConfig llada_moe(std::int64_t count, std::int64_t expert_width, const Sizes& sizes, const Ids& ids) {
  ModelConfig config = olmo_model(Family::llada_moe, "LLaDAMoEModel", sizes, ids);
  config.names = TensorNames::llama;
  config.rope_theta = 50000;
  config.max_positions = 8192;
  config.qk_norm = true;
  config.mlp_width = expert_width;
  config.experts = ExpertsConfig{count, 8, false, ""};
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
      {"dream-7b", dream_7b(), llama_json, generation_json, llama_weights},
      {"llama-3.1-8b", llama_8b({32, 32, 4096, 14336, 128256}, 8), llama_json, generation_json,
       llama_weights},
      {"qwen2.5-7b", qwen2_7b(), llama_json, generation_json, llama_weights},
      {"llada-moe-7b", llada_moe(64, 1024, {16, 16, 2048, 1024, 157184}, {156895, 156892, 156892}),
       llada_moe_json, generation_json, llama_weights},
      // LLaDA's proportions in sizes for tests
      {"llada-small", olmo_model(Family::llada, "LLaDAModelLM", {8, 8, 512, 1536, 8192}, {8191, 8189, 8188}),
       llada_json, generation_json, olmo_weights},
      {"llada-tiny", olmo_model(Family::llada, "LLaDAModelLM", {2, 4, 64, 192, 512}, {511, 509, 508}),
       llada_json, generation_json, olmo_weights},
      {"llama-tiny", llama_tiny(), llama_json, generation_json, llama_weights},
      {"llada-moe-tiny", llada_moe(16, 32, {2, 4, 64, 32, 512}, {511, 509, 508}), llada_moe_json,
       generation_json, llama_weights},
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
