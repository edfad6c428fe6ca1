#include "checkpoint/vocabulary_config.h"

#include <sinkscope/error.h>

namespace sinkscope {

void read_vocabulary(const ConfigSource& source, const TensorMap& tensors, const std::string& checkpoint,
                     const VocabularyNames& names, ModelConfig& config) {
  const bool has_head = tensors.contains(names.head);
  config.tied_head = optional_flag(source, names.tied_key).value_or(!has_head);
  config.embedding_rows = matrix_rows(tensors, names.embedding, config.width, checkpoint);
  if (!config.tied_head && !has_head)
    throw Error("{} lacks the output matrix {}, which {} false in config.json calls for", checkpoint,
                names.head, names.tied_key);
  config.head_rows =
      config.tied_head ? config.embedding_rows : matrix_rows(tensors, names.head, config.width, checkpoint);
  if (config.head_rows > config.embedding_rows)
    throw Error("{}: the output matrix {} has {} rows, more than the {} ids that {} can embed", checkpoint,
                names.head, config.head_rows, config.embedding_rows, names.embedding);
}

}  // namespace sinkscope
