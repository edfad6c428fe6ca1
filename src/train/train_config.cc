#include "train/train_config.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/json.h"
#include "base/random_bits.h"
#include "checkpoint/attention_variant_config.h"
#include "checkpoint/config_keys.h"
#include "checkpoint/limits.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

constexpr std::int64_t most_steps = 1'000'000'000;
constexpr std::int64_t most_positions = 1 << 20;

// The object at `key`, or an empty one.
ConfigSource part_of(const ConfigSource& source, const char* key) {
  static const Json nothing = Json::object();
  const Json* found = find_key(source, key);
  if (found != nullptr && !found->is_object())
    throw Error("{}: {} is {}; it should be an object", source.where, key, json_type_name(*found));
  return {found == nullptr ? nothing : *found, source.where + " " + key};
}

std::optional<std::string> optional_text(const ConfigSource& source, const char* key) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string())
    throw Error("{}: {} is {}; it should be a string", source.where, key, json_type_name(*value));
  return value->get<std::string>();
}

// A number from 0 to largest.
double number_or(const ConfigSource& source, const char* key, double otherwise, double largest) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return otherwise;
  const bool right = value->is_number() && value->get<double>() >= 0 && value->get<double>() <= largest;
  if (!right)
    throw Error("{}: {} is {}; it should be a number from 0 to {}", source.where, key, shown(*value),
                largest);
  return value->get<double>();
}

std::int64_t count_or(const ConfigSource& source, const char* key, std::int64_t otherwise,
                      std::int64_t largest = most_steps) {
  return optional_count_or_zero(source, key, largest).value_or(otherwise);
}

std::vector<std::filesystem::path> paths(const ConfigSource& source, const char* key,
                                         const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> result;
  const Json* value = find_key(source, key);
  if (value == nullptr) return result;
  const bool right = value->is_array() && std::all_of(value->begin(), value->end(), [](const Json& element) {
                       return element.is_string() && !element.get_ref<const std::string&>().empty();
                     });
  if (!right) throw Error("{}: {} should be a list of names of files", source.where, key);
  for (const Json& element : *value) result.push_back(folder / element.get<std::string>());
  return result;
}

ModelConfig model_of(const ConfigSource& source, Objective objective) {
  refuse_unknown_keys(source, {"attention", "heads", "kv_heads", "layers", "mlp_width", "norm_eps",
                               "rope_theta", "sliding_window", "tied_head", "width"});
  ModelConfig model;
  model.layers = required_count(source, "layers", largest_layers);
  model.width = required_count(source, "width", 1 << 16);
  model.heads = required_count(source, "heads", model.width);
  model.kv_heads = optional_count(source, "kv_heads", model.heads).value_or(model.heads);
  model.mlp_width = required_count(source, "mlp_width", 1 << 20);
  if (model.width % model.heads != 0 || model.width / model.heads % 2 != 0)
    throw Error("{}: width {} should be an even number of columns for each of {} heads", source.where,
                model.width, model.heads);
  if (model.heads % model.kv_heads != 0)
    throw Error("{}: heads {} should be a multiple of kv_heads {}", source.where, model.heads,
                model.kv_heads);
  model.head_dim = model.width / model.heads;
  model.tied_head = optional_flag(source, "tied_head").value_or(false);
  model.rope_theta = optional_positive(source, "rope_theta", 1e12).value_or(10000);
  model.norm_eps = optional_positive(source, "norm_eps", 1).value_or(1e-5);
  model.sliding_window = count_or(source, "sliding_window", 0, most_positions);
  const bool masked = objective == Objective::masked_diffusion;
  if (masked && model.sliding_window > 0)
    throw Error("{}: sliding_window is for autoregressive models", source.where);
  model.names = masked ? TensorNames::olmo : TensorNames::llama;
  model.generation = masked ? Generation::masked : Generation::autoregressive;
  return model;
}

AttentionVariant attention_of(const ConfigSource& model_source, const ConfigSource& source,
                              const ModelConfig& model, Objective objective) {
  const ConfigSource part = part_of(model_source, "attention");
  if (part.object.contains("prefix"))
    throw Error("{}: there is no key prefix; the objective prefix-lm has it, beside `objective`", part.where);
  AttentionVariant variant = read_attention_variant(part, model);
  const bool has_prefix = objective == Objective::prefix_lm;
  variant.prefix = optional_count(source, "prefix", most_positions).value_or(0);
  if (has_prefix && variant.prefix == 0)
    throw Error(
        "{}: prefix is missing; for the objective prefix-lm it should be the number of tokens that all see",
        source.where);
  if (!has_prefix && variant.prefix > 0)
    throw Error("{}: prefix is for the objective prefix-lm", source.where);
  return variant;
}

// Under which class of the family's a checkpoint is written.
void name_class(Objective objective, ModelConfig& model) {
  const bool masked = objective == Objective::masked_diffusion;
  const bool usual = model.attention == AttentionVariant{};
  if (masked) {
    model.family = Family::llada;
    model.architecture = usual ? "LLaDAModelLM" : "SinkscopeLLaDAModel";
  } else if (usual && model.sliding_window > 0) {
    model.family = Family::mistral;
    model.architecture = "MistralForCausalLM";
  } else {
    model.family = Family::llama;
    model.architecture = usual ? "LlamaForCausalLM" : "SinkscopeLlamaForCausalLM";
  }
}

DataConfig data_of(const ConfigSource& source, const std::filesystem::path& folder) {
  refuse_unknown_keys(source, {"answer_only", "files", "fill", "layout"});
  DataConfig data;
  data.files = paths(source, "files", folder);
  if (data.files.empty()) throw Error("{}: files should name at least one file", source.where);
  data.layout = choice(source, "layout", DataLayout::rows,
                       {{"rows", DataLayout::rows}, {"joined", DataLayout::joined}});
  data.answer_only = optional_flag(source, "answer_only").value_or(false);
  data.fill = count_or(source, "fill", 0, most_positions);
  if (data.layout == DataLayout::joined && (data.answer_only || data.fill > 0))
    throw Error("{}: {} is for the layout rows; joined texts are cut without regard to where one ends",
                source.where, data.answer_only ? "answer_only" : "fill");
  return data;
}

OptimizerConfig optimizer_of(const ConfigSource& source) {
  refuse_unknown_keys(source, {"beta1", "beta2", "clip", "ema", "eps", "final_learning_rate", "learning_rate",
                               "warmup", "weight_decay"});
  OptimizerConfig optimizer;
  optimizer.learning_rate = optional_positive(source, "learning_rate", 10).value_or(optimizer.learning_rate);
  optimizer.final_learning_rate =
      number_or(source, "final_learning_rate", optimizer.learning_rate / 10, optimizer.learning_rate);
  optimizer.warmup = count_or(source, "warmup", optimizer.warmup);
  optimizer.weight_decay = number_or(source, "weight_decay", optimizer.weight_decay, 100);
  optimizer.beta1 = number_or(source, "beta1", optimizer.beta1, 0.999999);
  optimizer.beta2 = number_or(source, "beta2", optimizer.beta2, 0.999999);
  optimizer.eps = optional_positive(source, "eps", 1).value_or(optimizer.eps);
  optimizer.clip = optional_positive(source, "clip", 1e9).value_or(optimizer.clip);
  optimizer.ema = optional_positive(source, "ema", 0.999999);
  return optimizer;
}

// Nothing is learnt of positions behind the context.
ProbeConfig probe_of(const ConfigSource& source, const std::filesystem::path& folder, std::int64_t context) {
  refuse_unknown_keys(source, {"every", "files", "positions", "samples"});
  ProbeConfig probe;
  probe.every = count_or(source, "every", probe.every);
  probe.files = paths(source, "files", folder);
  probe.samples = optional_count(source, "samples", 100000).value_or(probe.samples);
  probe.positions =
      optional_count(source, "positions", most_positions).value_or(std::min(probe.positions, context));
  if (probe.every > 0 && (probe.positions < 2 || probe.positions > context))
    throw Error("{}: positions is {}; it should be from 2 to the context, {}", source.where, probe.positions,
                context);
  return probe;
}

void read_training(const ConfigSource& source, TrainConfig& config) {
  config.context = optional_count(source, "context", most_positions).value_or(config.context);
  config.batch = optional_count(source, "batch", 1 << 20).value_or(config.batch);
  config.accumulate = optional_count(source, "accumulate", 1 << 20).value_or(config.accumulate);
  config.steps = required_count(source, "steps", most_steps);
  config.bfloat16 = choice(source, "precision", false, {{"f32", false}, {"bf16", true}});
  config.seed = static_cast<std::uint64_t>(count_or(source, "seed", 1));
  config.log_every = optional_count(source, "log_every", most_steps).value_or(config.log_every);
  config.checkpoint_every =
      optional_count(source, "checkpoint_every", most_steps).value_or(config.checkpoint_every);
  config.keep = optional_count(source, "keep", most_steps).value_or(config.keep);
  config.model.weights_dtype =
      choice(source, "weights", DType::f32, {{"f32", DType::f32}, {"bf16", DType::bf16}});
}

}  // namespace

TrainConfig read_train_config(const std::filesystem::path& file) {
  const Json json = read_json_file(file, 1 << 20);
  if (!json.is_object())
    throw Error("{} is {}; it should be an object of training options", file.string(), json_type_name(json));
  const ConfigSource source{json, file.string()};
  const std::filesystem::path folder = file.parent_path();
  refuse_unknown_keys(source, {"accumulate", "batch", "chat_template", "checkpoint_every", "context", "data",
                               "keep", "log_every", "model", "objective", "optimizer", "precision", "prefix",
                               "probe", "seed", "steps", "tokenizer", "weights"});
  TrainConfig config;
  config.file = file;
  config.objective = choice(source, "objective", Objective::masked_diffusion,
                            {{"masked-diffusion", Objective::masked_diffusion},
                             {"autoregressive", Objective::autoregressive},
                             {"prefix-lm", Objective::prefix_lm}});
  const ConfigSource model = part_of(source, "model");
  config.model = model_of(model, config.objective);
  config.model.attention = attention_of(model, source, config.model, config.objective);
  name_class(config.objective, config.model);
  const std::optional<std::string> tokenizer = optional_text(source, "tokenizer");
  if (!tokenizer)
    throw Error("{}: tokenizer is missing; it should name a folder with a tokenizer.json", source.where);
  config.tokenizer = folder / *tokenizer;
  config.chat_template = optional_text(source, "chat_template");
  config.data = data_of(part_of(source, "data"), folder);
  if (config.data.fill > 0 && config.objective != Objective::masked_diffusion)
    throw Error("{} data: fill is for the objective masked-diffusion", source.where);
  config.optimizer = optimizer_of(part_of(source, "optimizer"));
  read_training(source, config);
  config.probe = probe_of(part_of(source, "probe"), folder, config.context);
  // A sink token stands in front of the text.
  config.model.max_positions = config.context + (config.model.attention.slot == KeySlot::sink_token ? 1 : 0);
  if (config.model.attention.prefix >= config.context)
    throw Error("{}: prefix {} should be less than context {}", source.where, config.model.attention.prefix,
                config.context);
  config.fingerprint = config_fingerprint(json);
  return config;
}

std::string config_fingerprint(const Json& config) {
  Json deciding = config;
  for (const char* key : {"log_every", "checkpoint_every", "keep", "probe"}) deciding.erase(key);
  return fmt::format("{:016x}", hash_of(deciding.dump()));
}

double learning_rate_at(const TrainConfig& config, std::int64_t step) {
  const OptimizerConfig& optimizer = config.optimizer;
  if (step <= optimizer.warmup)
    return optimizer.learning_rate * static_cast<double>(step) / static_cast<double>(optimizer.warmup);
  const auto left = static_cast<double>(std::max<std::int64_t>(1, config.steps - optimizer.warmup));
  const double done = std::min(1.0, static_cast<double>(step - optimizer.warmup) / left);
  const double share = (1 + std::cos(std::numbers::pi * done)) / 2;
  return optimizer.final_learning_rate + (optimizer.learning_rate - optimizer.final_learning_rate) * share;
}

std::string_view objective_name(Objective objective) {
  switch (objective) {
    case Objective::masked_diffusion:
      return "masked-diffusion";
    case Objective::autoregressive:
      return "autoregressive";
    case Objective::prefix_lm:
      return "prefix-lm";
  }
  return "";
}

}  // namespace sinkscope
