#include "model/workspace.h"

namespace sinkscope {
namespace {

// Without bytes where the input is the tensor itself.
ProductInput take_prepared(Arena& arena, const Linear& linear, std::int64_t rows) {
  if (linear.input_form() == InputForm::storage) return {};
  return take_input(arena, linear, rows);
}

at::Tensor take_result(Arena& arena, const TransformerWeights& weights, std::int64_t rows,
                       std::int64_t width) {
  if (weights.backend == Backend::aten) return {};
  return arena.take({rows, width}, weights.dtype);
}

}  // namespace

ProductInput take_input(Arena& arena, const Linear& linear, std::int64_t rows) {
  ProductInput input;
  input.form = linear.input_form();
  if (linear.backend() == Backend::aten) return input;
  const std::int64_t width = linear.in_features();
  switch (input.form) {
    case InputForm::storage:
      input.values = arena.take({rows, width}, linear.dtype());
      break;
    case InputForm::widened:
      input.values = arena.take({rows, width}, at::kFloat);
      break;
    case InputForm::quantised:
      input.values = arena.take({rows, width}, at::kByte);
      input.scale = arena.take({rows}, at::kFloat);
      input.zero = arena.take({rows}, at::kInt);
      break;
  }
  return input;
}

AttentionBuffers take_attention_buffers(Arena& arena, const TransformerWeights& weights,
                                        const BlockRows& rows) {
  const BlockWeights& block = weights.blocks.front();
  AttentionBuffers buffers;
  buffers.normed = take_input(arena, block.key, rows.tokens);
  if (rows.queries < rows.tokens) buffers.wanted_normed = take_input(arena, block.query, rows.queries);
  buffers.query = take_result(arena, weights, rows.queries, block.query.out_features());
  buffers.key = take_result(arena, weights, rows.tokens, block.key.out_features());
  buffers.value = take_result(arena, weights, rows.tokens, block.value.out_features());
  buffers.output = take_result(arena, weights, rows.wanted, block.query.out_features());
  buffers.prepared = take_prepared(arena, block.attention_out, rows.wanted);
  return buffers;
}

MlpBuffers take_mlp_buffers(Arena& arena, const TransformerWeights& weights, std::int64_t rows) {
  const BlockWeights& block = weights.blocks.front();
  MlpBuffers buffers;
  buffers.normed = take_input(arena, block.gate, rows);
  buffers.gated = take_result(arena, weights, rows, block.gate.out_features());
  buffers.prepared = take_prepared(arena, block.down, rows);
  return buffers;
}

std::int64_t plan_pass(const TransformerWeights& weights, std::int64_t tokens) {
  Arena counting;
  take_result(counting, weights, tokens, weights.embedding.size(1));
  take_result(counting, weights, tokens, weights.embedding.size(1));  // the rows that leave the last block
  const std::int64_t mark = counting.mark();
  take_attention_buffers(counting, weights, {tokens, tokens, tokens});
  take_input(counting, weights.blocks.front().query, tokens);
  counting.back_to(mark);
  take_mlp_buffers(counting, weights, tokens);
  counting.back_to(mark);
  take_input(counting, weights.head, tokens);
  return counting.peak();
}

}  // namespace sinkscope
