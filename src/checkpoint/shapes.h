// The shapes of released models, for checkpoints with random weights: speed depends on shapes, not on values.
#pragma once

#include <sinkscope/model_config.h>

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "checkpoint/random_weights.h"

namespace sinkscope {

/// A row of the table in shapes.cc. The functions take the row's config, whose layers and weights_dtype the
/// caller may have changed.
struct ModelShape {
  std::string_view name;  // on the command line
  ModelConfig config;
  /// config.json with every key the released one has, and generation_config.json.
  nlohmann::ordered_json (*config_json)(const ModelConfig& config);
  nlohmann::ordered_json (*generation_json)(const ModelConfig& config);
  /// In the order they are stored in.
  std::vector<RandomTensor> (*weights)(const ModelConfig& config);
};

std::span<const ModelShape> model_shapes();

/// Throws UsageError listing the known names.
const ModelShape& model_shape(std::string_view name);

}  // namespace sinkscope
