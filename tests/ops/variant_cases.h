// Every variant of attention at least once, with random weights for it.
#pragma once

#include <ATen/ATen.h>

#include <ostream>
#include <string>
#include <vector>

#include "ops/attention_variant.h"

namespace sinkscope::testing {

struct VariantCase {
  std::string name;
  AttentionVariant variant;
  bool causal = true;
  std::int64_t window = 0;
  std::int64_t prefix = 0;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
};
inline void PrintTo(const VariantCase& c, std::ostream* out) { *out << c.name; }

inline const std::vector<VariantCase>& variant_cases() {
  using enum Similarity;
  using enum PositionEncoding;
  static const std::vector<VariantCase> list{
      {"sigmoid", {.similarity = sigmoid}},
      {"sigmoid_unnormalised", {.similarity = sigmoid, .normalised = false}},
      {"sigmoid_p2", {.similarity = sigmoid, .p = 2}},
      {"elu_plus_one", {.similarity = elu_plus_one}},
      {"elu_plus_one_unnormalised", {.similarity = elu_plus_one, .normalised = false}},
      {"elu_plus_one_p3", {.similarity = elu_plus_one, .p = 3}},
      {"elu_kernel", {.similarity = elu_kernel}},
      {"elu_kernel_unnormalised_bidirectional", {.similarity = elu_kernel, .normalised = false}, false},
      {"linear_kernel", {.similarity = linear_kernel}},
      {"linear_kernel_unnormalised", {.similarity = linear_kernel, .normalised = false}},
      {"mlp_kernel", {.similarity = mlp_kernel}},
      {"mlp_kernel_bidirectional", {.similarity = mlp_kernel, .normalised = false}, false},
      {"softmax_p2", {.p = 2}},
      {"softmax_p_half_bidirectional", {.p = 0.5}, false},
      {"softmax_scaled", {.scale = 0.1}},
      {"sigmoid_scaled_window", {.similarity = sigmoid, .scale = 2}, true, 3},
      {"key_value_bias", {.slot = KeySlot::key_value_bias}},
      {"key_value_bias_shared", {.slot = KeySlot::key_value_bias, .slot_shared = true}},
      {"key_value_bias_window", {.slot = KeySlot::key_value_bias}, true, 2},
      {"key_value_bias_bidirectional", {.slot = KeySlot::key_value_bias}, false},
      {"key_value_bias_linear", {.similarity = linear_kernel, .slot = KeySlot::key_value_bias}},
      {"key_value_bias_mlp", {.similarity = mlp_kernel, .slot = KeySlot::key_value_bias}},
      {"key_value_bias_sigmoid_p2", {.similarity = sigmoid, .p = 2, .slot = KeySlot::key_value_bias}},
      {"sink_token", {.slot = KeySlot::sink_token}, false},
      {"key_bias", {.slot = KeySlot::key_bias}},
      {"key_bias_shared_one_kv_head", {.slot = KeySlot::key_bias, .slot_shared = true}, true, 0, 0, 3, 1},
      {"key_bias_first", {.slot = KeySlot::key_bias, .slot_value = SlotValue::first, .slot_value_norm = 5}},
      {"key_bias_uniform",
       {.slot = KeySlot::key_bias, .slot_dims = 2, .slot_value = SlotValue::uniform, .slot_value_norm = 5}},
      {"value_bias", {.value_bias = true}, false},
      {"alibi", {.positions = alibi}},
      {"alibi_bidirectional_6_heads", {.positions = alibi}, false, 0, 0, 6, 2},
      {"alibi_key_bias", {.slot = KeySlot::key_bias, .positions = alibi}},
      {"relative", {.positions = relative}},
      {"relative_bidirectional", {.positions = relative}, false},
      {"relative_sigmoid_key_value_bias",
       {.similarity = sigmoid, .slot = KeySlot::key_value_bias, .positions = relative}},
      {"relative_bucket", {.positions = relative_bucket}},
      {"relative_bucket_bidirectional", {.positions = relative_bucket}, false},
      {"prefix_value_bias", {.value_bias = true}, true, 0, 3},
      {"prefix_window_sigmoid", {.similarity = sigmoid, .normalised = false}, true, 2, 3},
      {"prefix_relative", {.positions = relative}, true, 0, 4},
      {"all_at_once",
       {.similarity = elu_plus_one,
        .p = 2,
        .scale = 0.5,
        .slot = KeySlot::key_value_bias,
        .value_bias = true,
        .positions = relative},
       true,
       4,
       2}};
  return list;
}

/// As a layer holds them: a slot's key has all coordinates, its fixed value is filled in.
inline AttentionVariantWeights random_weights(const VariantCase& c, std::int64_t width, at::ScalarType type) {
  const AttentionVariant& variant = c.variant;
  const at::TensorOptions options(type);
  const auto rows = [&](std::int64_t count, std::int64_t columns) {
    return at::randn({count, columns}, options);
  };
  const std::int64_t slot_heads = variant.slot_shared ? 1 : c.kv_heads;
  AttentionVariantWeights weights;
  if (variant.slot != KeySlot::none)
    weights.slot_key = slot_key(rows(slot_heads, variant.slot_dims > 0 ? variant.slot_dims : width), width);
  if (variant.slot == KeySlot::key_bias)
    weights.slot_value = fixed_slot_value(variant, width, options);
  else if (variant.slot != KeySlot::none)
    weights.slot_value = rows(slot_heads, width);
  if (variant.value_bias) weights.value_bias = rows(c.heads, width);
  if (variant.positions == PositionEncoding::relative)
    weights.relative_bias = rows(c.heads, relative_buckets);
  if (variant.similarity == Similarity::mlp_kernel) {
    weights.kernel_in = rows(width, width) * 0.5;
    weights.kernel_out = rows(width, width) * 0.5;
  }
  return weights;
}

}  // namespace sinkscope::testing
