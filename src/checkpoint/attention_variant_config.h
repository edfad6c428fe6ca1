// How a checkpoint says which variant of attention it has: an object in config.json, and tensors.
#pragma once

#include <sinkscope/model_config.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "checkpoint/config_keys.h"
#include "checkpoint/random_weights.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

/// The key of config.json under which the object below stands.
inline constexpr const char* attention_variant_key = "sinkscope_attention";

/// Keys: similarity, normalised, p, scale, slot, slot_shared, slot_dims, slot_value, slot_value_norm,
/// value_bias, positions, prefix, post_norm, each with AttentionVariant's default; docs/training.md describes
/// them. Of the `model` only heads, width and how it generates are looked at. Throws Error naming the key
/// that is unknown, out of range, or of no meaning beside another one.
AttentionVariant read_attention_variant(const ConfigSource& source, const ModelConfig& model);

/// The object of a config.json, or the default's where there is none.
AttentionVariant find_attention_variant(const ConfigSource& config_json, const ModelConfig& model);

/// Those keys that are not the default's.
nlohmann::ordered_json attention_variant_json(const AttentionVariant& variant);

/// Names of the tensors that a variant adds; empty: none.
struct VariantNames {
  std::string slot_key, slot_value, value_bias, relative_bias, kernel_in, kernel_out;
};
VariantNames variant_names(const ModelConfig& config, std::int64_t layer);
struct VariantOuterNames {
  std::string positions, sink_token;
};
VariantOuterNames variant_outer_names(const ModelConfig& config);

/// The tensors themselves, and how they begin: biases and slots at zero, positions and the sink token at
/// deviation 0.02, an MLP kernel's matrices at sqrt(2 / (5 head_dim)), the paper's.
std::vector<RandomTensor> variant_weights(const ModelConfig& config);
std::vector<ExpectedTensor> variant_tensors(const ModelConfig& config);

}  // namespace sinkscope
