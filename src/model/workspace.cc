#include "model/workspace.h"

#include "ops/linear.h"

namespace sinkscope {
namespace {

ProductInput take_prepared(Arena& arena, const PassShape& shape, std::int64_t rows, std::int64_t width) {
  if (shape.form == InputForm::storage) return {};
  return take_input(arena, shape, rows, width);
}

at::Tensor take_result(Arena& arena, const PassShape& shape, std::int64_t rows, std::int64_t width) {
  if (shape.backend == Backend::aten) return {};
  return arena.take({rows, width}, shape.dtype);
}

}  // namespace

PassShape pass_shape(const ModelConfig& config, at::ScalarType dtype, WeightFormat format, Backend backend) {
  PassShape shape;
  shape.backend = backend;
  shape.dtype = dtype;
  if (backend == Backend::cpu) shape.form = input_form(dtype, format == WeightFormat::int8);
  shape.width = config.width;
  shape.query_width = config.heads * config.head_dim;
  shape.key_width = config.kv_heads * config.head_dim;
  shape.mlp_width = config.mlp_width;
  if (config.experts) shape.experts = config.experts->count;
  return shape;
}

const RopeTable& KeptRope::at_least(std::int64_t positions, const RopeOptions& wanted,
                                    const at::Device& device) {
  if (table.positions() >= positions && options == wanted && table.cosine.device() == device) return table;
  std::int64_t room = 64;
  while (room < positions) room *= 2;
  table = rope_table(room, wanted, device);
  options = wanted;
  return table;
}

ProductInput take_input(Arena& arena, const PassShape& shape, std::int64_t rows, std::int64_t width) {
  ProductInput input;
  input.form = shape.form;
  if (shape.backend == Backend::aten) return input;
  switch (input.form) {
    case InputForm::storage:
      input.values = arena.take({rows, width}, shape.dtype);
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

AttentionBuffers take_attention_buffers(Arena& arena, const PassShape& shape, const BlockRows& rows) {
  AttentionBuffers buffers;
  buffers.normed = take_input(arena, shape, rows.tokens, shape.width);
  if (rows.queries < rows.tokens) buffers.wanted_normed = take_input(arena, shape, rows.queries, shape.width);
  buffers.query = take_result(arena, shape, rows.queries, shape.query_width);
  buffers.key = take_result(arena, shape, rows.tokens, shape.key_width);
  buffers.value = take_result(arena, shape, rows.tokens, shape.key_width);
  buffers.output = take_result(arena, shape, rows.wanted, shape.query_width);
  buffers.prepared = take_prepared(arena, shape, rows.wanted, shape.query_width);
  return buffers;
}

MlpBuffers take_mlp_buffers(Arena& arena, const PassShape& shape, std::int64_t rows) {
  MlpBuffers buffers;
  buffers.normed = take_input(arena, shape, rows, shape.width);
  buffers.gated = take_result(arena, shape, rows, shape.mlp_width);
  buffers.prepared = take_prepared(arena, shape, rows, shape.mlp_width);
  return buffers;
}

ExpertsBuffers take_experts_buffers(Arena& arena, const PassShape& shape, std::int64_t rows) {
  ExpertsBuffers buffers;
  buffers.normed = take_input(arena, shape, rows, shape.width);
  PassShape router = shape;
  if (shape.backend == Backend::cpu) router.form = input_form(shape.dtype, /*int8=*/false);
  if (router.form != shape.form) buffers.router_input = take_input(arena, router, rows, shape.width);
  buffers.router = take_result(arena, shape, rows, shape.experts);
  buffers.chosen = take_input(arena, shape, rows, shape.width);
  buffers.mlp.gated = take_result(arena, shape, rows, shape.mlp_width);
  buffers.mlp.prepared = take_prepared(arena, shape, rows, shape.mlp_width);
  buffers.result = take_result(arena, shape, rows, shape.width);
  buffers.sum = take_result(arena, shape, rows, shape.width);
  return buffers;
}

std::int64_t plan_pass(const PassShape& shape, std::int64_t tokens) {
  Arena counting;
  take_result(counting, shape, tokens, shape.width);
  take_result(counting, shape, tokens, shape.width);  // the rows that leave the last block
  const std::int64_t mark = counting.mark();
  take_attention_buffers(counting, shape, {tokens, tokens, tokens});
  counting.back_to(mark);
  take_attention_buffers(counting, shape, {tokens, tokens - 1, tokens - 1});
  counting.back_to(mark);
  if (shape.experts > 0)
    take_experts_buffers(counting, shape, tokens);
  else
    take_mlp_buffers(counting, shape, tokens);
  counting.back_to(mark);
  take_input(counting, shape, tokens, shape.width);
  return counting.peak();
}

}  // namespace sinkscope
