// How many ids a model reads and predicts: from its tensors, whatever the config's keys are called.
#pragma once

#include <sinkscope/model_config.h>

#include <string>
#include <string_view>

#include "checkpoint/config_keys.h"
#include "checkpoint/tensor_check.h"

namespace sinkscope {

/// What a family calls them.
struct VocabularyNames {
  std::string embedding, head;  // tensors
  std::string_view tied_key;    // the flag in config.json
};

/// Fills embedding_rows, head_rows and tied_head. A tied model uses the embedding as its head and ignores a
/// head that lies in the file, as the authors' code does; without the flag a model is tied where there is no
/// head. Throws Error when the head is missing or has more rows than the embedding.
void read_vocabulary(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                     const VocabularyNames& names, ModelConfig& config);

}  // namespace sinkscope
