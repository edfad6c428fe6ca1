#include "cli/special_ids.h"

#include <sinkscope/error.h>

namespace sinkscope {

std::int32_t mask_id_of(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer) {
  if (checkpoint.config().mask_id) return static_cast<std::int32_t>(*checkpoint.config().mask_id);
  for (const char* token : {"<|mdm_mask|>", "<|mask|>"})
    if (const auto id = tokenizer ? tokenizer->id_of(token) : std::nullopt) return *id;
  throw Error(
      "{} has no mask_token_id, and neither <|mdm_mask|> nor <|mask|> is in the tokenizer: the mask id must "
      "be known "
      "to fill masks",
      checkpoint.config_file().string());
}

SpecialIds special_ids(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer) {
  const ModelConfig& config = checkpoint.config();
  SpecialIds ids;
  if (config.generation != Generation::autoregressive) ids.mask = mask_id_of(checkpoint, tokenizer);
  for (const std::int64_t id : config.eos_ids) ids.ends.push_back(static_cast<std::int32_t>(id));
  if (tokenizer) ids.end_of_turn = tokenizer->id_of("<|eot_id|>");
  return ids;
}

}  // namespace sinkscope
