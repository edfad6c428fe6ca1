// The table of supported families: how each is recognised and which reader knows its keys and tensors.
#pragma once

#include <sinkscope/model_config.h>

#include <string>

#include "checkpoint/config_keys.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

using ConfigReader = void (*)(const ConfigSource& source, const TensorMap& tensors,
                              const std::string& checkpoint, ModelConfig& config);

struct RecognisedFamily {
  Family family;
  std::string architecture;  // the name it was recognised by
  ConfigReader read;
  bool has_variants = false;  // of attention
};

/// By `architectures`, where there is none by `model_type`, where there is none by the names of the tensors.
/// Throws Error naming the unsupported architecture and the supported ones.
RecognisedFamily recognise_family(const ConfigSource& source, const TensorMap& tensors);

}  // namespace sinkscope
