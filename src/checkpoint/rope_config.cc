#include "checkpoint/rope_config.h"

#include <sinkscope/error.h>

#include "checkpoint/limits.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

constexpr double usual_theta = 10000;
constexpr double largest_factor = 1e6;

// An object at this key; none when absent.
std::optional<ConfigSource> object_at(const ConfigSource& source, std::string_view key) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_object())
    throw Error("{}: {} is {}; it should be an object or null", source.where, key, shown(*value));
  return ConfigSource{*value, fmt::format("{}: {}", source.where, key)};
}

// "rope_type", in older files "type"; "default" where there is none.
std::string scaling_kind(const ConfigSource& scaling) {
  const Json* kind = find_key(scaling, "rope_type");
  if (kind == nullptr) kind = find_key(scaling, "type");
  if (kind == nullptr) return "default";
  if (!kind->is_string())
    throw Error("{}.rope_type is {}; it should be a string", scaling.where, shown(*kind));
  return kind->get<std::string>();
}

void read_llama3(const ConfigSource& scaling, ModelConfig& config) {
  Llama3Scaling llama3;
  llama3.factor = required_positive(scaling, "factor", largest_factor);
  llama3.low_frequency_factor = required_positive(scaling, "low_freq_factor", largest_factor);
  llama3.high_frequency_factor = required_positive(scaling, "high_freq_factor", largest_factor);
  llama3.original_positions =
      static_cast<double>(required_count(scaling, "original_max_position_embeddings", largest_positions));
  if (llama3.high_frequency_factor <= llama3.low_frequency_factor)
    throw Error("{}: high_freq_factor is {}; it should be larger than low_freq_factor, {}", scaling.where,
                llama3.high_frequency_factor, llama3.low_frequency_factor);
  config.llama3_scaling = llama3;
}

void read_scaling(const ConfigSource& scaling, ModelConfig& config) {
  const std::string kind = scaling_kind(scaling);
  if (kind == "default") return;
  if (kind == "llama3") return read_llama3(scaling, config);
  if (kind == "linear") {
    config.rope_factor = required_positive(scaling, "factor", largest_factor);
    return;
  }
  throw Error("{}: the scaling {} is not supported; llama3, linear and default are", scaling.where,
              in_quotes(kind));
}

}  // namespace

void read_rope(const ConfigSource& source, ModelConfig& config) {
  const std::optional<ConfigSource> parameters = object_at(source, "rope_parameters");
  const std::optional<ConfigSource> scaling = object_at(source, "rope_scaling");
  std::optional<double> theta = optional_positive(source, "rope_theta", largest_rope_theta);
  if (!theta && parameters) theta = optional_positive(*parameters, "rope_theta", largest_rope_theta);
  config.rope_theta = theta.value_or(usual_theta);
  if (scaling)
    read_scaling(*scaling, config);
  else if (parameters)
    read_scaling(*parameters, config);
  check_switch(source, {"partial_rotary_factor", 1, false});
  if (parameters) check_switch(*parameters, {"partial_rotary_factor", 1, false});
}

}  // namespace sinkscope
