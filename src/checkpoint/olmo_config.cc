#include "checkpoint/olmo_config.h"

#include <sinkscope/error.h>

#include <cmath>

#include "checkpoint/attention_variant_config.h"
#include "checkpoint/limits.h"
#include "checkpoint/message.h"
#include "checkpoint/vocabulary_config.h"

namespace sinkscope {
namespace {

// The authors' code supports each of these in several forms, released models use one. Where the key's absence
// means another form in that code (layer_norm_type: "default", rope: false, ...), it is required.
const std::vector<Switch>& switches() {
  static const std::vector<Switch> list = {
      {"layer_norm_type", "rms", true},        {"block_type", "llama", true},
      {"activation_type", "silu", true},       {"rope_full_precision", true, false},
      {"rope_scaling", nullptr, false},        {"block_group_size", 1, false},
      {"layer_norm_with_affine", true, false}, {"bias_for_layer_norm", false, false},
      {"include_bias", false, false},          {"include_qkv_bias", false, false},
      {"attention_bias", false, false},        {"attention_layer_norm", false, false},
      {"qk_layernorm", false, false},          {"clip_qkv", nullptr, false},
      {"scale_logits", false, false},          {"input_emb_norm", false, false},
      {"sliding_window", nullptr, false},      {"use_sliding_window", false, false},
      {"num_experts", nullptr, false},         {"quantization_config", nullptr, false},
  };
  return list;
}

std::int64_t read_kv_heads(const ConfigSource& source, std::int64_t heads) {
  const bool multi_query = optional_flag(source, "multi_query_attention").value_or(false);
  const auto given = optional_count(source, "n_kv_heads", largest_heads);
  const std::int64_t kv_heads = given.value_or(multi_query ? 1 : heads);
  if (multi_query && kv_heads != 1)
    throw Error("{}: n_kv_heads is {}, but multi_query_attention true means 1", source.where, kv_heads);
  if (heads % kv_heads != 0)
    throw Error("{}: n_heads is {}, which should be a multiple of n_kv_heads, {}", source.where, heads,
                kv_heads);
  return kv_heads;
}

// mlp_hidden_size wins; else mlp_ratio * d_model, which has to be a whole number.
std::int64_t read_mlp_width(const ConfigSource& source, std::int64_t width) {
  if (const auto given = optional_count(source, "mlp_hidden_size", largest_mlp_width)) return *given;
  const auto ratio = optional_positive(source, "mlp_ratio", 1024);
  if (!ratio) throw Error("{}: mlp_hidden_size or mlp_ratio is needed, both are missing", source.where);
  const double product = *ratio * static_cast<double>(width);
  if (product < 1 || product > static_cast<double>(largest_mlp_width) || product != std::floor(product))
    throw Error("{}: mlp_ratio is {}, which times d_model {} gives no MLP width from 1 to {}", source.where,
                *ratio, width, largest_mlp_width);
  return static_cast<std::int64_t>(product);
}

void read_sizes(const ConfigSource& source, ModelConfig& config) {
  config.width = required_count(source, "d_model", largest_width);
  config.layers = required_count(source, "n_layers", largest_layers);
  config.heads = required_count(source, "n_heads", largest_heads);
  if (config.width % config.heads != 0)
    throw Error("{}: d_model is {}, which should be a multiple of n_heads, {}", source.where, config.width,
                config.heads);
  config.head_dim = config.width / config.heads;
  if (config.head_dim % 2 != 0)
    throw Error("{}: d_model {} / n_heads {} gives the head dimension {}, RoPE needs an even one",
                source.where, config.width, config.heads, config.head_dim);
  config.kv_heads = read_kv_heads(source, config.heads);
  config.mlp_width = read_mlp_width(source, config.width);
  config.rope_theta = required_positive(source, "rope_theta", largest_rope_theta);
  config.norm_eps = required_positive(source, "rms_norm_eps", 1.0);
  config.max_positions = required_count(source, "max_sequence_length", largest_positions);
  // Read for their types only: the tensors size the matrices (MMaDA's two may differ from the rows and each
  // other).
  optional_count(source, "vocab_size", largest_id_count);
  optional_count(source, "embedding_size", largest_id_count);
}

}  // namespace

std::vector<ExpectedTensor> olmo_tensors(const ModelConfig& config) {
  const std::int64_t kv_width = config.kv_heads * config.head_dim;
  std::vector<ExpectedTensor> tensors = {{olmo_embedding, {config.embedding_rows, config.width}}};
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string block = fmt::format("model.transformer.blocks.{}.", layer);
    tensors.push_back({block + "attn_norm.weight", {config.width}});
    tensors.push_back({block + "q_proj.weight", {config.width, config.width}});
    tensors.push_back({block + "k_proj.weight", {kv_width, config.width}});
    tensors.push_back({block + "v_proj.weight", {kv_width, config.width}});
    tensors.push_back({block + "attn_out.weight", {config.width, config.width}});
    tensors.push_back({block + "ff_norm.weight", {config.width}});
    tensors.push_back({block + "ff_proj.weight", {config.mlp_width, config.width}});
    tensors.push_back({block + "up_proj.weight", {config.mlp_width, config.width}});
    tensors.push_back({block + "ff_out.weight", {config.width, config.mlp_width}});
  }
  if (!config.attention.post_norm) tensors.push_back({"model.transformer.ln_f.weight", {config.width}});
  if (!config.tied_head) tensors.push_back({olmo_head, {config.head_rows, config.width}});
  return tensors;
}

void read_olmo_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                      ModelConfig& config) {
  for (const Switch& expected : switches()) check_switch(source, expected);
  read_sizes(source, config);
  config.attention = find_attention_variant(source, config);
  const PositionEncoding positions = config.attention.positions;
  check_switch(source, {"rope", positions == PositionEncoding::rope, true});
  check_switch(source, {"alibi", positions == PositionEncoding::alibi, false});
  read_vocabulary(source, tensors, checkpoint, {olmo_embedding, olmo_head, "weight_tying"}, config);

  std::vector<ExpectedTensor> expected = olmo_tensors(config);
  for (ExpectedTensor& tensor : variant_tensors(config)) expected.push_back(std::move(tensor));
  // A tied model's ignored head is known by name but of no consequence, so its own shape is taken for right.
  if (const auto head = tensors.find(olmo_head); config.tied_head && head != tensors.end())
    expected.push_back({olmo_head, head->second.shape});
  check_tensors(expected, tensors, checkpoint);
  config.weights_dtype = dominating_dtype(expected, tensors);
}

}  // namespace sinkscope
