#include <fmt/format.h>
#include <sinkscope/token_writer.h>

#include <algorithm>

#include "record/effect_arrays.h"

namespace sinkscope {

TokenWriter::TokenWriter(std::filesystem::path path, TokenLayout layout)
    : layout_(layout), writer_(std::move(path)) {
  constexpr std::int32_t no_mask = -1;
  writer_.declare("states", ArrayType::int32, {layout_.longest});
  writer_.add("prompt_length", {}, std::span(&layout_.prompt_length, 1));
  writer_.add("mask_id", {}, std::span(&no_mask, 1));
  if (layout_.logits) writer_.declare("logits", ArrayType::float32, {layout_.vocabulary});
  if (!layout_.effect) return;
  for (const EffectArray& array : effect_arrays) writer_.declare(array.name, array.type, {});
}

void TokenWriter::append_state(std::span<const std::int32_t> sequence) {
  std::vector<std::int32_t> state(static_cast<std::size_t>(layout_.longest), -1);
  std::copy(sequence.begin(), sequence.end(), state.begin());
  writer_.append("states", state);
}

void TokenWriter::append_token(const TokenStep& step) {
  append_state(step.sequence);
  if (layout_.logits) writer_.append("logits", step.logits);
  if (layout_.effect) {
    writer_.append("effect_kl", std::span(&step.effect_kl, 1));
    writer_.append("effect_agrees", std::span(&step.effect_agrees, 1));
    writer_.append("effect_confidence", std::span(&step.effect_confidence, 1));
    writer_.append("effect_probability", std::span(&step.effect_probability, 1));
    writer_.append("removed_mass", std::span(&step.removed_mass, 1));
  }
  const std::vector<std::int64_t> shape{layout_.layers, layout_.heads,
                                        static_cast<std::int64_t>(step.sequence.size())};
  if (layout_.rows)
    writer_.add(fmt::format("last_row_{}", tokens_), layout_.array_type, shape, step.last_row);
  if (layout_.intervention && tokens_ > 0)
    writer_.add(fmt::format("masked_keys_{}", tokens_), shape, step.masked_keys);
  ++tokens_;
}

void TokenWriter::finish(std::span<const std::int32_t> sequence) {
  append_state(sequence);
  writer_.finish();
}

}  // namespace sinkscope
