// The tokenizer of a training run, in a folder of the run.
#pragma once

#include <sinkscope/tokenizer.h>

#include <cstdint>
#include <filesystem>
#include <optional>

#include "train/token_cache.h"
#include "train/train_config.h"

namespace sinkscope {

struct TrainingTokenizer {
  std::filesystem::path folder;
  Tokenizer tokenizer;
  std::optional<ChatTemplate> prompts;
  std::optional<std::int32_t> bos;
  std::int32_t eos = 0;
  std::int32_t mask = -1;  // of masked diffusion

  TextEncoder encoder() const { return {tokenizer, prompts, bos, eos}; }
  /// Fills in the model's vocabulary and special ids.
  void complete(ModelConfig& model) const;
};

/// Copies the tokenizer's files (tokenizer.json, tokenizer_config.json and their like) into `folder`, where
/// there is none yet, with the config's chat template. The end token is tokenizer_config.json's eos_token,
/// the mask its mask_token or <|mdm_mask|>. Throws Error when one is missing that the objective needs.
TrainingTokenizer prepare_training_tokenizer(const TrainConfig& config, const std::filesystem::path& folder);

}  // namespace sinkscope
