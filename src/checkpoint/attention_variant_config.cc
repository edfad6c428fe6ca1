#include "checkpoint/attention_variant_config.h"

#include <sinkscope/error.h>

#include <cmath>

#include "checkpoint/limits.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

const Choices<Similarity> similarities = {{"softmax", Similarity::softmax},
                                          {"sigmoid", Similarity::sigmoid},
                                          {"elu-plus-one", Similarity::elu_plus_one},
                                          {"elu-kernel", Similarity::elu_kernel},
                                          {"linear-kernel", Similarity::linear_kernel},
                                          {"mlp-kernel", Similarity::mlp_kernel}};
const Choices<KeySlot> slots = {{"none", KeySlot::none},
                                {"sink-token", KeySlot::sink_token},
                                {"key-value-bias", KeySlot::key_value_bias},
                                {"key-bias", KeySlot::key_bias}};
const Choices<SlotValue> slot_values = {
    {"zero", SlotValue::zero}, {"first", SlotValue::first}, {"uniform", SlotValue::uniform}};
const Choices<PositionEncoding> positions = {{"rope", PositionEncoding::rope},
                                             {"none", PositionEncoding::none},
                                             {"learned", PositionEncoding::learned},
                                             {"sinusoid", PositionEncoding::sinusoid},
                                             {"alibi", PositionEncoding::alibi},
                                             {"relative", PositionEncoding::relative},
                                             {"relative-bucket", PositionEncoding::relative_bucket}};

template <typename Value>
const char* name_of(const Choices<Value>& choices, Value value) {
  for (const auto& [name, choice] : choices)
    if (choice == value) return name;
  return "";
}

// Every key, in the order in which they are written.
std::vector<std::string> all_keys() {
  const nlohmann::ordered_json json =
      attention_variant_json({Similarity::sigmoid, false, 2, 2, KeySlot::key_bias, true, 1, SlotValue::first,
                              1, true, PositionEncoding::none, 1, true});
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  return keys;
}

std::int64_t count_or_zero(const ConfigSource& source, const char* key, std::int64_t largest) {
  return optional_count_or_zero(source, key, largest).value_or(0);
}

// What is of no meaning, or cannot be, together.
void check_combination(const ConfigSource& source, const AttentionVariant& variant,
                       const ModelConfig& model) {
  const auto refuse = [&](const char* key, const char* right) {
    throw Error("{}: {} {}", source.where, key, right);
  };
  const bool is_signed =
      variant.similarity == Similarity::linear_kernel || variant.similarity == Similarity::mlp_kernel;
  if (variant.similarity == Similarity::softmax && !variant.normalised)
    refuse("normalised", "should be true for softmax; sigmoid, elu-plus-one and the kernels go without");
  if (variant.p != 1 && (is_signed || !variant.normalised))
    refuse("p", "is for normalised similarities that are never negative");
  if (variant.slot == KeySlot::sink_token && variant.similarity != Similarity::softmax)
    refuse("slot", "sink-token is for softmax; key-value-bias goes with every similarity");
  if (variant.slot_shared && variant.slot != KeySlot::key_bias && variant.slot != KeySlot::key_value_bias)
    refuse("slot_shared", "is for the slots key-bias and key-value-bias");
  if (variant.slot_dims > 0 && variant.slot != KeySlot::key_bias)
    refuse("slot_dims", "is for the slot key-bias");
  if (variant.slot_value != SlotValue::zero && variant.slot != KeySlot::key_bias)
    refuse("slot_value", "is for the slot key-bias; those of the others are learnt");
  if ((variant.slot_value == SlotValue::zero) != (variant.slot_value_norm == 0))
    refuse("slot_value_norm", "is the norm of slot_value \"first\" or \"uniform\", and above 0 for them");
  const bool has_bias = variant.positions == PositionEncoding::alibi ||
                        variant.positions == PositionEncoding::relative ||
                        variant.positions == PositionEncoding::relative_bucket;
  if (has_bias &&
      (variant.similarity == Similarity::elu_kernel || variant.similarity == Similarity::mlp_kernel))
    refuse("positions", "alibi, relative and relative-bucket add to q.k, which this kernel does not take");
  if (variant.prefix > 0 && !model.causal()) refuse("prefix", "is for autoregressive models");
}

std::string layer_prefix(const ModelConfig& config, std::int64_t layer) {
  return config.names == TensorNames::olmo ? fmt::format("model.transformer.blocks.{}.", layer)
                                           : fmt::format("model.layers.{}.self_attn.", layer);
}

}  // namespace

AttentionVariant read_attention_variant(const ConfigSource& source, const ModelConfig& model) {
  refuse_unknown_keys(source, all_keys());
  const auto positive = [&](const char* key, double otherwise) {
    return optional_positive(source, key, 1e6).value_or(otherwise);
  };
  AttentionVariant variant;
  variant.similarity = choice(source, "similarity", variant.similarity, similarities);
  variant.normalised = optional_flag(source, "normalised").value_or(true);
  variant.p = positive("p", 1);
  // Z grows like the number of keys to the power of 1 / p, which has to stay a number.
  if (variant.p < 0.25 || variant.p > 64)
    throw Error("{}: p is {}; it should be from 0.25 to 64", source.where, variant.p);
  variant.scale = positive("scale", 1);
  variant.slot = choice(source, "slot", variant.slot, slots);
  variant.slot_shared = optional_flag(source, "slot_shared").value_or(false);
  variant.slot_dims = count_or_zero(source, "slot_dims", model.head_dim);
  variant.slot_value = choice(source, "slot_value", variant.slot_value, slot_values);
  variant.slot_value_norm = positive("slot_value_norm", 0);
  variant.value_bias = optional_flag(source, "value_bias").value_or(false);
  variant.positions = choice(source, "positions", variant.positions, positions);
  variant.prefix = count_or_zero(source, "prefix", largest_positions);
  variant.post_norm = optional_flag(source, "post_norm").value_or(false);
  check_combination(source, variant, model);
  return variant;
}

AttentionVariant find_attention_variant(const ConfigSource& config_json, const ModelConfig& model) {
  const Json* found = find_key(config_json, attention_variant_key);
  if (found == nullptr) return {};
  const std::string where = config_json.where + " " + attention_variant_key;
  if (!found->is_object()) throw Error("{} should be an object, not {}", where, json_type_name(*found));
  return read_attention_variant({*found, where}, model);
}

nlohmann::ordered_json attention_variant_json(const AttentionVariant& variant) {
  const AttentionVariant usual;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (variant.similarity != usual.similarity) json["similarity"] = name_of(similarities, variant.similarity);
  if (variant.normalised != usual.normalised) json["normalised"] = variant.normalised;
  if (variant.p != usual.p) json["p"] = variant.p;
  if (variant.scale != usual.scale) json["scale"] = variant.scale;
  if (variant.slot != usual.slot) json["slot"] = name_of(slots, variant.slot);
  if (variant.slot_shared) json["slot_shared"] = true;
  if (variant.slot_dims > 0) json["slot_dims"] = variant.slot_dims;
  if (variant.slot_value != usual.slot_value) json["slot_value"] = name_of(slot_values, variant.slot_value);
  if (variant.slot_value_norm > 0) json["slot_value_norm"] = variant.slot_value_norm;
  if (variant.value_bias) json["value_bias"] = true;
  if (variant.positions != usual.positions) json["positions"] = name_of(positions, variant.positions);
  if (variant.prefix > 0) json["prefix"] = variant.prefix;
  if (variant.post_norm) json["post_norm"] = true;
  return json;
}

VariantNames variant_names(const ModelConfig& config, std::int64_t layer) {
  const AttentionVariant& variant = config.attention;
  const std::string attention = layer_prefix(config, layer);
  const bool learns_key = variant.slot == KeySlot::key_bias || variant.slot == KeySlot::key_value_bias;
  VariantNames names;
  if (learns_key) names.slot_key = attention + "bias_k";
  if (variant.slot == KeySlot::key_value_bias) names.slot_value = attention + "bias_v";
  if (variant.value_bias) names.value_bias = attention + "bias_out";
  if (variant.positions == PositionEncoding::relative) names.relative_bias = attention + "relative_bias";
  if (variant.similarity == Similarity::mlp_kernel) {
    names.kernel_in = attention + "kernel_in.weight";
    names.kernel_out = attention + "kernel_out.weight";
  }
  return names;
}

VariantOuterNames variant_outer_names(const ModelConfig& config) {
  const bool olmo = config.names == TensorNames::olmo;
  VariantOuterNames names;
  if (config.attention.positions == PositionEncoding::learned)
    names.positions = olmo ? "model.transformer.wpe.weight" : "model.embed_positions.weight";
  if (config.attention.slot == KeySlot::sink_token)
    names.sink_token = olmo ? "model.transformer.sink_token" : "model.sink_token";
  return names;
}

std::vector<RandomTensor> variant_weights(const ModelConfig& config) {
  constexpr double deviation = 0.02;
  const double kernel = std::sqrt(0.4 / static_cast<double>(config.head_dim));
  const AttentionVariant& variant = config.attention;
  std::vector<RandomTensor> weights;
  const auto add = [&](const std::string& name, std::vector<std::int64_t> shape, double spread) {
    if (!name.empty()) weights.push_back({name, std::move(shape), 0, spread});
  };
  const VariantOuterNames outer = variant_outer_names(config);
  add(outer.positions, {config.max_positions, config.width}, deviation);
  add(outer.sink_token, {config.width}, deviation);
  const std::int64_t slot_heads = variant.slot_shared ? 1 : config.kv_heads;
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    const VariantNames names = variant_names(config, layer);
    add(names.slot_key, {slot_heads, variant.slot_dims > 0 ? variant.slot_dims : config.head_dim}, 0);
    add(names.slot_value, {slot_heads, config.head_dim}, 0);
    add(names.value_bias, {config.heads, config.head_dim}, 0);
    add(names.relative_bias, {config.heads, relative_buckets}, 0);
    add(names.kernel_in, {config.head_dim, config.head_dim}, kernel);
    add(names.kernel_out, {config.head_dim, config.head_dim}, kernel);
  }
  return weights;
}

std::vector<ExpectedTensor> variant_tensors(const ModelConfig& config) {
  std::vector<ExpectedTensor> tensors;
  for (RandomTensor& tensor : variant_weights(config))
    tensors.push_back({std::move(tensor.name), std::move(tensor.shape)});
  return tensors;
}

}  // namespace sinkscope
