// LLaDA and MMaDA: configurations with OLMo's key names (d_model, n_layers, ...) and its tensor names.
#pragma once

#include <sinkscope/model_config.h>

#include <string>
#include <vector>

#include "checkpoint/config_keys.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

inline constexpr const char* olmo_embedding = "model.transformer.wte.weight";
inline constexpr const char* olmo_head = "model.transformer.ff_out.weight";

/// Every weight of such a model, in the order of their use.
std::vector<ExpectedTensor> olmo_tensors(const ModelConfig& config);

/// Fills everything, a variant of attention too, but family, architecture and ids, and checks every tensor.
/// `checkpoint` names the folder.
void read_olmo_config(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                      ModelConfig& config);

}  // namespace sinkscope
