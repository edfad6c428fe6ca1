// Ids that commands need and that a checkpoint or its tokenizer names.
#pragma once

#include <sinkscope/checkpoint.h>
#include <sinkscope/tokenizer.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace sinkscope {

struct SpecialIds {
  std::optional<std::int32_t> mask;  // diffusion models only, and there always
  std::vector<std::int32_t> ends;
  std::optional<std::int32_t> end_of_turn;
};

/// config.json's mask id, else the tokenizer's. Throws Error where neither names one: it is not guessed.
std::int32_t mask_id_of(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer);

SpecialIds special_ids(const Checkpoint& checkpoint, const std::optional<Tokenizer>& tokenizer);

}  // namespace sinkscope
