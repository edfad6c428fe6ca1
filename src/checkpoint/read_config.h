// From the parsed JSON of a checkpoint folder to a ModelConfig.
#pragma once

#include <sinkscope/model_config.h>

#include <string>

#include "base/json.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

/// `generation` is the content of generation_config.json, null when there is no such file. `checkpoint` is
/// the folder as messages name it. Throws Error as Checkpoint::open does. Runs on any JSON, which is what the
/// fuzzer gives it.
ModelConfig read_model_config(const Json& config, const Json& generation, const TensorMap& tensors,
                              const std::string& checkpoint);

}  // namespace sinkscope
