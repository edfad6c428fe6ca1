#include "checkpoint/llama_config.h"

#include <sinkscope/error.h>

#include "checkpoint/attention_variant_config.h"
#include "checkpoint/limits.h"
#include "checkpoint/message.h"
#include "checkpoint/rope_config.h"
#include "checkpoint/vocabulary_config.h"

namespace sinkscope {
namespace {

// What no model of this kind that we run has.
const std::vector<Switch>& switches() {
  static const std::vector<Switch> list = {
      {"hidden_act", "silu", false},
      {"use_mrope", false, false},
      {"mlp_bias", false, false},
      {"clip_qkv", nullptr, false},
      {"quantization_config", nullptr, false},
      {"residual_multiplier", 1, false},
      {"logits_scaling", 1, false},
      {"embedding_multiplier", 1, false},
      {"num_local_experts", nullptr, false},
  };
  return list;
}

void read_heads(const ConfigSource& source, ModelConfig& config) {
  config.heads = required_count(source, "num_attention_heads", largest_heads);
  config.kv_heads = optional_count(source, "num_key_value_heads", largest_heads).value_or(config.heads);
  if (config.heads % config.kv_heads != 0)
    throw Error("{}: num_attention_heads is {}, which should be a multiple of num_key_value_heads, {}",
                source.where, config.heads, config.kv_heads);
  const auto stated = optional_count(source, "head_dim", largest_width);
  if (!stated && config.width % config.heads != 0)
    throw Error(
        "{}: hidden_size is {}, which should be a multiple of num_attention_heads, {}, where no head_dim is "
        "given",
        source.where, config.width, config.heads);
  config.head_dim = stated.value_or(config.width / config.heads);
  if (config.head_dim % 2 != 0)
    throw Error("{}: the head dimension is {}, RoPE needs an even one", source.where, config.head_dim);
  if (config.heads * config.head_dim > largest_width)
    throw Error("{}: num_attention_heads {} times the head dimension {} is more than {}", source.where,
                config.heads, config.head_dim, largest_width);
}

void read_sizes(const ConfigSource& source, ModelConfig& config) {
  config.names = TensorNames::llama;
  config.rope_in_storage = true;
  config.width = required_count(source, "hidden_size", largest_width);
  config.layers = required_count(source, "num_hidden_layers", largest_layers);
  read_heads(source, config);
  config.norm_eps = required_positive(source, "rms_norm_eps", 1.0);
  config.max_positions = required_count(source, "max_position_embeddings", largest_positions);
  optional_count(source, "vocab_size", largest_id_count);  // for its type only: the tensors size the matrices
  read_rope(source, config);
}

// Of tensors that are there but of no consequence their own shape is taken for right: a tied model's head,
// and the frequencies that older Llama files store.
void expect_ignored(const TensorMap& tensors, const ModelConfig& config,
                    std::vector<ExpectedTensor>& expected) {
  if (const auto head = tensors.find(llama_head); config.tied_head && head != tensors.end())
    expected.push_back({llama_head, head->second.shape});
  for (const auto& [name, view] : tensors)
    if (name.ends_with(".rotary_emb.inv_freq")) expected.push_back({name, view.shape});
}

// Everything that the families share; what they do not is in config already.
void read_common(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                 ModelConfig& config) {
  for (const Switch& expected : switches()) check_switch(source, expected);
  read_vocabulary(source, tensors, checkpoint, {llama_embedding, llama_head, "tie_word_embeddings"}, config);
  std::vector<ExpectedTensor> expected = llama_tensors(config);
  for (ExpectedTensor& tensor : variant_tensors(config)) expected.push_back(std::move(tensor));
  expect_ignored(tensors, config, expected);
  check_tensors(expected, tensors, checkpoint);
  config.weights_dtype = dominating_dtype(llama_tensors(config), tensors);
}

void read_dense_mlp(const ConfigSource& source, ModelConfig& config) {
  check_switch(source, {"num_experts", nullptr, false});
  config.mlp_width = required_count(source, "intermediate_size", largest_mlp_width);
}

// The window of layers from `max_window_layers` on, where use_sliding_window switches it on.
void read_qwen_window(const ConfigSource& source, ModelConfig& config) {
  if (!optional_flag(source, "use_sliding_window").value_or(false)) return;
  config.sliding_window = required_count(source, "sliding_window", largest_positions);
  const Json* first = find_key(source, "max_window_layers");
  if (first == nullptr || *first != 0)
    config.first_windowed_layer = required_count(source, "max_window_layers", largest_layers);
}

// `layer_types` of newer files says the same again; anything else than what the keys above mean is refused.
void check_layer_types(const ConfigSource& source, const ModelConfig& config) {
  const Json* types = find_key(source, "layer_types");
  if (types == nullptr) return;
  if (!types->is_array() || types->size() != static_cast<std::size_t>(config.layers))
    throw Error("{}: layer_types should be a list of {} names, one a layer", source.where, config.layers);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string_view right = config.window_of(layer) > 0 ? "sliding_attention" : "full_attention";
    const Json& given = (*types)[static_cast<std::size_t>(layer)];
    if (given != right)
      throw Error(
          "{}: layer_types has {} for layer {}; {} is what its other keys mean and all that is supported",
          source.where, shown(given), layer, right);
  }
}

void read_autoregressive(const ConfigSource& source, ModelConfig& config) {
  config.generation = Generation::autoregressive;
  read_sizes(source, config);
  read_dense_mlp(source, config);
}

}  // namespace

std::vector<ExpectedTensor> llama_tensors(const ModelConfig& config) {
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  const std::int64_t width = config.width, mlp = config.mlp_width;
  std::vector<ExpectedTensor> tensors = {{llama_embedding, {config.embedding_rows, width}}};
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape) {
    tensors.push_back({name, std::move(shape)});
  };
  const auto add_mlp = [&](const std::string& part) {
    add(part + "gate_proj.weight", {mlp, width});
    add(part + "up_proj.weight", {mlp, width});
    add(part + "down_proj.weight", {width, mlp});
  };
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    add(block + "input_layernorm.weight", {width});
    const std::pair<const char*, std::int64_t> projections[] = {
        {"q_proj", query_width}, {"k_proj", key_width}, {"v_proj", key_width}};
    for (const auto& [name, out] : projections) {
      add(fmt::format("{}self_attn.{}.weight", block, name), {out, width});
      if (config.qkv_bias) add(fmt::format("{}self_attn.{}.bias", block, name), {out});
    }
    add(block + "self_attn.o_proj.weight", {width, query_width});
    if (config.output_bias) add(block + "self_attn.o_proj.bias", {width});
    if (config.qk_norm) {
      add(block + "self_attn.q_norm.weight", {config.head_dim});
      add(block + "self_attn.k_norm.weight", {config.head_dim});
    }
    add(block + "post_attention_layernorm.weight", {width});
    if (!config.experts) {
      add_mlp(block + "mlp.");
      continue;
    }
    add(block + "mlp.gate.weight", {config.experts->count, width});
    if (!config.experts->selection_bias.empty())
      add(block + config.experts->selection_bias, {config.experts->count});
    for (std::int64_t e = 0; e < config.experts->count; ++e)
      add_mlp(fmt::format("{}mlp.experts.{}.", block, e));
  }
  if (!config.attention.post_norm) add("model.norm.weight", {width});
  if (!config.tied_head) add(llama_head, {config.head_rows, width});
  return tensors;
}

void read_llama_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config) {
  read_autoregressive(source, config);
  config.qkv_bias = config.output_bias = optional_flag(source, "attention_bias").value_or(false);
  check_switch(source, {"sliding_window", nullptr, false});
  check_layer_types(source, config);
  read_common(source, tensors, checkpoint, config);
}

void read_llama_variant_config(const ConfigSource& source, const TensorMap& tensors,
                               const std::string& checkpoint, ModelConfig& config) {
  read_autoregressive(source, config);
  config.sliding_window = optional_count(source, "sliding_window", largest_positions).value_or(0);
  config.attention = find_attention_variant(source, config);
  check_switch(source, {"attention_bias", false, false});
  check_switch(source, {"layer_types", nullptr, false});
  read_common(source, tensors, checkpoint, config);
}

void read_mistral_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                         ModelConfig& config) {
  read_autoregressive(source, config);
  config.sliding_window = optional_count(source, "sliding_window", largest_positions).value_or(0);
  check_switch(source, {"attention_bias", false, false});
  check_layer_types(source, config);
  read_common(source, tensors, checkpoint, config);
}

void read_qwen2_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config) {
  read_autoregressive(source, config);
  config.qkv_bias = true;
  read_qwen_window(source, config);
  check_layer_types(source, config);
  read_common(source, tensors, checkpoint, config);
}

void read_qwen3_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config) {
  read_autoregressive(source, config);
  config.qk_norm = true;
  config.qkv_bias = config.output_bias = optional_flag(source, "attention_bias").value_or(false);
  read_qwen_window(source, config);
  check_layer_types(source, config);
  read_common(source, tensors, checkpoint, config);
}

void read_dream_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                       ModelConfig& config) {
  config.generation = Generation::shifted_masked;
  read_sizes(source, config);
  read_dense_mlp(source, config);
  config.qkv_bias = true;
  check_switch(source, {"use_sliding_window", false, false});
  check_layer_types(source, config);
  read_common(source, tensors, checkpoint, config);
}

void read_llada_moe_config(const ConfigSource& source, const TensorMap& tensors,
                           const std::string& checkpoint, ModelConfig& config) {
  read_sizes(source, config);
  config.qk_norm = optional_flag(source, "qk_layernorm").value_or(true);
  config.qkv_bias = config.output_bias = optional_flag(source, "attention_bias").value_or(false);
  check_switch(source, {"shared_expert_intermediate_size", nullptr, false});
  check_switch(source, {"num_shared_experts", nullptr, false});
  check_switch(source, {"scoring_func", "softmax", false});
  for (const char* key : {"n_group", "topk_group", "routed_scaling_factor"})
    check_switch(source, {key, 1, false});
  ExpertsConfig experts;
  experts.count = required_count(source, "num_experts", largest_experts);
  experts.chosen = required_count(source, "num_experts_per_tok", largest_experts);
  experts.normalised = optional_flag(source, "norm_topk_prob").value_or(false);
  config.mlp_width = required_count(source, "expert_intermediate_size", largest_mlp_width);
  if (experts.chosen > experts.count)
    throw Error("{}: num_experts_per_tok is {}, more than num_experts, {}", source.where, experts.chosen,
                experts.count);
  // Bounds the names built below by what the file holds.
  if (static_cast<std::size_t>(experts.count * config.layers) > tensors.size())
    throw Error("{} has {} tensors, too few for {} experts in each of {} layers", checkpoint, tensors.size(),
                experts.count, config.layers);
  const Json* frequency = find_key(source, "moe_layer_freq");  // a number, or a list of one for each layer
  if (frequency != nullptr && frequency->is_array()) {
    for (const Json& layer : *frequency)
      if (layer != 1)
        throw Error("{}: moe_layer_freq holds {}; only 1, experts in every layer, is supported", source.where,
                    shown(layer));
  } else {
    check_switch(source, {"moe_layer_freq", 1, false});
  }
  for (const char* name : {"mlp.gate.expert_bias", "mlp.expert_bias"})
    if (tensors.contains(std::string("model.layers.0.") + name)) experts.selection_bias = name;
  config.experts = std::move(experts);
  read_common(source, tensors, checkpoint, config);
}

}  // namespace sinkscope
