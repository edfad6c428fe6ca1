#include <fmt/format.h>
#include <sinkscope/token_writer.h>

#include <algorithm>

namespace sinkscope {

TokenWriter::TokenWriter(std::filesystem::path path, TokenLayout layout)
    : layout_(layout), writer_(std::move(path)) {
  constexpr std::int32_t no_mask = -1;
  writer_.declare("states", ArrayType::int32, {layout_.longest});
  writer_.add("prompt_length", {}, std::span(&layout_.prompt_length, 1));
  writer_.add("mask_id", {}, std::span(&no_mask, 1));
  if (layout_.logits) writer_.declare("logits", ArrayType::float32, {layout_.vocabulary});
}

void TokenWriter::append_state(std::span<const std::int32_t> sequence) {
  std::vector<std::int32_t> state(static_cast<std::size_t>(layout_.longest), -1);
  std::copy(sequence.begin(), sequence.end(), state.begin());
  writer_.append("states", state);
}

void TokenWriter::append_token(const TokenStep& step) {
  append_state(step.sequence);
  if (layout_.logits) writer_.append("logits", step.logits);
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
