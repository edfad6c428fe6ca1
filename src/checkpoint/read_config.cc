#include "checkpoint/read_config.h"

#include <sinkscope/error.h>

#include <algorithm>

#include "checkpoint/attention_variant_config.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/families.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

// The names PyTorch's types have in config.json; any other hint is no hint.
std::optional<DType> declared_dtype(const ConfigSource& source) {
  const Json* value = find_key(source, "torch_dtype");
  if (value == nullptr) value = find_key(source, "dtype");  // its name in newer files
  if (value == nullptr || !value->is_string()) return std::nullopt;
  if (*value == "float32") return DType::f32;
  if (*value == "float16") return DType::f16;
  if (*value == "bfloat16") return DType::bf16;
  return std::nullopt;
}

void check_id(const ConfigSource& source, std::string_view key, std::int64_t id, const ModelConfig& config) {
  if (id >= config.embedding_rows)
    throw Error("{}: {} is {}, but the embedding has rows for ids below {} only", source.where, key, id,
                config.embedding_rows);
}

void check_id(const ConfigSource& source, std::string_view key, std::optional<std::int64_t> id,
              const ModelConfig& config) {
  if (id) check_id(source, key, *id, config);
}

// Adds the ids that are not there yet, in their order.
void add_eos_ids(const ConfigSource& source, ModelConfig& config) {
  for (const std::int64_t id : ids(source, "eos_token_id")) {
    check_id(source, "eos_token_id", id, config);
    const bool known = std::find(config.eos_ids.begin(), config.eos_ids.end(), id) != config.eos_ids.end();
    if (!known) config.eos_ids.push_back(id);
    // Keeps the search above short on hostile lists; real ones have one to three.
    if (config.eos_ids.size() > 1024) throw Error("{}: eos_token_id lists more than 1024 ids", source.where);
  }
}

// Nothing is ever padded here, so that an id without a row, as conversions of old checkpoints have it, does
// no harm: it counts as none.
std::optional<std::int64_t> pad_id(const ConfigSource& source, const ModelConfig& config) {
  const Json* value = find_key(source, "pad_token_id");
  if (value != nullptr && value->is_number_integer() && (*value < 0 || *value >= config.embedding_rows))
    return std::nullopt;
  return optional_id(source, "pad_token_id");
}

void read_ids(const ConfigSource& source, ModelConfig& config) {
  config.mask_id = optional_id(source, "mask_token_id");
  config.pad_id = pad_id(source, config);
  config.bos_id = optional_id(source, "bos_token_id");
  check_id(source, "mask_token_id", config.mask_id, config);
  check_id(source, "bos_token_id", config.bos_id, config);
  add_eos_ids(source, config);
}

void add_generation_ids(const ConfigSource& source, ModelConfig& config) {
  add_eos_ids(source, config);
  const auto bos = optional_id(source, "bos_token_id");
  check_id(source, "bos_token_id", bos, config);
  if (!config.bos_id) config.bos_id = bos;
}

}  // namespace

ModelConfig read_model_config(const Json& config_json, const Json& generation, const TensorMap& tensors,
                              const std::string& checkpoint) {
  const ConfigSource source{config_json, checkpoint + "/config.json"};
  if (!config_json.is_object())
    throw Error("{} should hold an object, not {}", source.where, json_type_name(config_json));
  const RecognisedFamily recognised = recognise_family(source, tensors);
  ModelConfig config;
  config.family = recognised.family;
  config.architecture = recognised.architecture;
  const bool says_variant = find_key(source, attention_variant_key) != nullptr;
  if (says_variant && !recognised.has_variants)
    throw Error("{}: {} stands there, and {} is a class that has no variants of attention", source.where,
                attention_variant_key, config.architecture);
  recognised.read(source, tensors, checkpoint, config);
  if (says_variant && config.attention == AttentionVariant{})
    throw Error("{}: {} changes nothing; a model of the usual attention is of the usual class", source.where,
                attention_variant_key);
  config.declared_dtype = declared_dtype(source);
  read_ids(source, config);
  if (!generation.is_null()) {
    const ConfigSource generation_source{generation, checkpoint + "/generation_config.json"};
    if (!generation.is_object())
      throw Error("{} should hold an object, not {}", generation_source.where, json_type_name(generation));
    add_generation_ids(generation_source, config);
  }
  return config;
}

}  // namespace sinkscope
