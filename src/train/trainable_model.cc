#include "train/trainable_model.h"

#include <ATen/ops/empty.h>
#include <sinkscope/error.h>

#include <cmath>
#include <numeric>

#include "checkpoint/attention_variant_config.h"
#include "model/block_names.h"
#include "ops/differentiable/attention.h"
#include "ops/differentiable/attention_variant.h"
#include "ops/differentiable/embedding.h"
#include "ops/differentiable/linear.h"
#include "ops/differentiable/rms_norm.h"
#include "ops/differentiable/rope.h"
#include "ops/differentiable/swiglu.h"

namespace sinkscope {
namespace {

// How models of this family are written; the sizes are the config's.
ModelShape shape_of(const ModelConfig& config) {
  ModelShape shape = model_shape(config.names == TensorNames::olmo ? "llada-tiny" : "llama-tiny");
  shape.config = config;
  return shape;
}

at::Tensor random_parameter(const RandomTensor& tensor, std::uint64_t seed, const at::Device& device) {
  at::Tensor value = at::empty(tensor.shape, at::TensorOptions(at::kFloat));
  const auto bytes = static_cast<std::size_t>(value.numel()) * sizeof(float);
  fill_random(tensor, seed, 0, DType::f32, {static_cast<std::byte*>(value.data_ptr()), bytes});
  return value.to(device).requires_grad_(true);
}

const at::Tensor& named(const TrainableModel& model, const std::string& name) {
  for (const NamedParameter& parameter : model.parameters)
    if (parameter.name == name) return parameter.value;
  throw Error("a model of the family {} has no parameter {}", family_name(model.config().family), name);
}

at::Tensor named_if_any(const TrainableModel& model, const std::string& name) {
  return name.empty() ? at::Tensor() : named(model, name);
}

AttentionVariantWeights variant_of(const TrainableModel& model, std::int64_t layer) {
  const VariantNames names = variant_names(model.config(), layer);
  return {named_if_any(model, names.slot_key),   named_if_any(model, names.slot_value),
          named_if_any(model, names.value_bias), named_if_any(model, names.relative_bias),
          named_if_any(model, names.kernel_in),  named_if_any(model, names.kernel_out)};
}

TrainableBlock block_of(const TrainableModel& model, std::int64_t layer) {
  const BlockNames names = block_names(model.config(), layer);
  return {named(model, names.attention_norm),
          named(model, names.query),
          named(model, names.key),
          named(model, names.value),
          named(model, names.attention_out),
          named(model, names.mlp_norm),
          named(model, names.gate),
          named(model, names.up),
          named(model, names.down),
          variant_of(model, layer)};
}

Backend backend_of(const at::Tensor& tensor) { return tensor.is_cpu() ? Backend::cpu : Backend::aten; }

// What all blocks of a pass share.
struct Pass {
  const ModelConfig& config;
  Backend backend;
  std::int64_t rows, length;
  RopeTable rope;
  ProductPrecision precision;
  const std::function<void(const LayerStates&)>& observe;
};

// x [N, width], and what the next part of a block works on.
struct Stream {
  at::Tensor x, normed;
};

// The layer's slot as a whole; of a sink token its key and value, which nothing but itself goes into.
AttentionVariantWeights slot_of(const Pass& pass, const TrainableBlock& block, const Stream& sink) {
  const ModelConfig& config = pass.config;
  AttentionVariantWeights weights = block.variant;
  if (weights.slot_key.defined()) weights.slot_key = slot_key(weights.slot_key, config.head_dim);
  if (config.attention.slot == KeySlot::key_bias)
    weights.slot_value = fixed_slot_value(config.attention, config.head_dim, block.key.options());
  if (!sink.x.defined()) return weights;
  const std::vector<at::Tensor> projected =
      linear(pass.backend, sink.normed, {block.key, block.value}, {}, pass.precision);
  weights.slot_key = projected[0].view({config.kv_heads, config.head_dim});
  weights.slot_value = projected[1].view({config.kv_heads, config.head_dim});
  return weights;
}

// q, k and v [B, T, heads, D] -> [B, T, H, D]
at::Tensor attention_of(const Pass& pass, std::int64_t layer, const VariantOfLayer& variant,
                        const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const ModelConfig& config = pass.config;
  const AttentionMask mask{config.causal(), config.attention.prefix, config.window_of(layer)};
  if (variant.variant != nullptr) return attention_variant(variant, q, k, v, mask);
  const double scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  return attention(pass.backend, q, k, v, scale, mask, pass.precision);
}

// [B T, width] -> [B T, width] before the output matrix.
at::Tensor attend(const Pass& pass, const TrainableBlock& block,
                  const AttentionVariantWeights& variant_weights, std::int64_t layer, const at::Tensor& x,
                  const at::Tensor& normed) {
  const ModelConfig& config = pass.config;
  const std::vector<at::Tensor> projected =
      linear(pass.backend, normed, {block.query, block.key, block.value}, {}, pass.precision);
  const auto heads = [&](const at::Tensor& t, std::int64_t count) {
    return t.view({pass.rows, pass.length, count, config.head_dim});
  };
  const auto rotated = [&](const at::Tensor& t) {
    return config.attention.positions == PositionEncoding::rope ? rope(pass.backend, t, pass.rope) : t;
  };
  const at::Tensor q = rotated(heads(projected[0], config.heads));
  const at::Tensor k = rotated(heads(projected[1], config.kv_heads));
  const at::Tensor v = heads(projected[2], config.kv_heads);
  const VariantOfLayer variant = config.attention.changes_attention()
                                     ? VariantOfLayer{&config.attention, &variant_weights}
                                     : VariantOfLayer{};
  if (pass.observe) pass.observe({layer, x, q, k, v, variant});
  const at::Tensor out = attention_of(pass, layer, variant, q, k, v);
  return out.reshape({pass.rows * pass.length, config.heads * config.head_dim});
}

at::Tensor feed_forward(const Pass& pass, const TrainableBlock& block, const at::Tensor& normed) {
  const std::vector<at::Tensor> parts =
      linear(pass.backend, normed, {block.gate, block.up}, {}, pass.precision);
  return linear(pass.backend, swiglu(pass.backend, parts[0], parts[1]), block.down, {}, pass.precision);
}

}  // namespace

std::int64_t TrainableModel::parameter_count() const {
  std::int64_t count = 0;
  for (const NamedParameter& parameter : parameters) count += parameter.value.numel();
  return count;
}

std::vector<at::Tensor> TrainableModel::tensors() const {
  std::vector<at::Tensor> all;
  for (const NamedParameter& parameter : parameters) all.push_back(parameter.value);
  return all;
}

double parameter_count(const ModelConfig& config) {
  double count = 0;
  for (const RandomTensor& tensor : shape_of(config).weights(config))
    count += std::accumulate(
        tensor.shape.begin(), tensor.shape.end(), 1.0,
        [](double product, std::int64_t extent) { return product * static_cast<double>(extent); });
  return count;
}

TrainableModel new_model(const ModelConfig& config, std::uint64_t seed, const at::Device& device) {
  TrainableModel model;
  model.shape = shape_of(config);
  for (const RandomTensor& tensor : model.shape.weights(config))
    model.parameters.push_back({tensor.name, random_parameter(tensor, seed, device)});
  const OuterNames outer = outer_names(config);
  model.embedding = named(model, outer.embedding);
  const VariantOuterNames variant = variant_outer_names(config);
  model.position_table = named_if_any(model, variant.positions);
  model.sink_token = named_if_any(model, variant.sink_token);
  if (!config.attention.post_norm) model.final_norm = named(model, outer.final_norm);
  model.head = config.tied_head ? model.embedding : named(model, outer.head);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) model.blocks.push_back(block_of(model, layer));
  return model;
}

namespace {

// x + change, and its norm. Where norms come behind (post-norm) the norm is the stream itself.
Stream add(const Pass& pass, const Stream& stream, const at::Tensor& change, const at::Tensor& norm) {
  const AddedNorm added = add_rms_norm(pass.backend, stream.x, change, norm, pass.config.norm_eps);
  return pass.config.attention.post_norm ? Stream{added.normed, added.normed}
                                         : Stream{added.sum, added.normed};
}

// The norm behind a block's attention, and the one behind its end.
struct BlockNorms {
  const at::Tensor& middle;
  const at::Tensor& end;
};

BlockNorms norms_of(const TrainableModel& model, std::size_t layer) {
  const TrainableBlock& block = model.blocks[layer];
  if (model.config().attention.post_norm) return {block.attention_norm, block.mlp_norm};
  const bool last = layer + 1 == model.blocks.size();
  return {block.mlp_norm, last ? model.final_norm : model.blocks[layer + 1].attention_norm};
}

// The rest of a block, behind its attention's heads.
Stream end_block(const Pass& pass, const TrainableModel& model, std::size_t layer, const Stream& stream,
                 const at::Tensor& attended) {
  const TrainableBlock& block = model.blocks[layer];
  const BlockNorms norms = norms_of(model, layer);
  const Stream middle = add(
      pass, stream, linear(pass.backend, attended, block.attention_out, {}, pass.precision), norms.middle);
  return add(pass, middle, feed_forward(pass, block, middle.normed), norms.end);
}

Stream first_stream(const Pass& pass, const TrainableModel& model, const at::Tensor& x) {
  if (model.config().attention.post_norm) return {x, x};
  return {x, rms_norm(pass.backend, x, model.blocks.front().attention_norm, pass.config.norm_eps)};
}

// Of all tokens of `rows` rows.
at::Tensor position_rows(const TrainableModel& model, std::int64_t rows, std::int64_t length) {
  const ModelConfig& config = model.config();
  const std::int64_t first = model.sink_token.defined() ? 1 : 0;
  at::Tensor table = model.position_table;
  if (config.attention.positions == PositionEncoding::sinusoid)
    table = sinusoid_table(first + length, config.width).to(model.embedding.device());
  return table.defined() ? table.narrow(0, first, length).repeat({rows, 1}) : at::Tensor();
}

// The value of a token that sees only itself, as its heads' output.
at::Tensor own_value(const ModelConfig& config, const AttentionVariantWeights& weights) {
  at::Tensor seen =
      weights.slot_value.repeat_interleave(config.heads / config.kv_heads, 0) * config.attention.scale;
  if (weights.value_bias.defined()) seen = seen + weights.value_bias;
  return seen.reshape({1, config.heads * config.head_dim});
}

// Angles of the positions of a text, which a sink token in front shifts by one.
RopeTable rotation_of(const TrainableModel& model, std::int64_t length, const at::Device& device) {
  const ModelConfig& config = model.config();
  const RopeOptions options{.head_dim = config.head_dim, .theta = config.rope_theta};
  if (!model.sink_token.defined()) return rope_table(length, options, device);
  RopeTable table = rope_table(length + 1, options, device);
  table.cosine = table.cosine.narrow(0, 1, length).contiguous();
  table.sine = table.sine.narrow(0, 1, length).contiguous();
  return table;
}

}  // namespace

at::Tensor hidden_rows(const TrainableModel& model, const at::Tensor& ids, std::int64_t rows,
                       ProductPrecision precision, const std::function<void(const LayerStates&)>& observe) {
  const ModelConfig& config = model.config();
  const Backend backend = backend_of(model.embedding);
  const std::int64_t length = ids.numel() / rows;
  const Pass pass{config,    backend, rows, length, rotation_of(model, length, ids.device()),
                  precision, observe};
  at::Tensor x = embedding(backend, model.embedding, ids);
  if (const at::Tensor positions = position_rows(model, rows, length); positions.defined()) x = x + positions;
  Stream stream = first_stream(pass, model, x);
  Stream sink;
  if (model.sink_token.defined()) sink = first_stream(pass, model, model.sink_token.unsqueeze(0));
  for (std::size_t layer = 0; layer < model.blocks.size(); ++layer) {
    const TrainableBlock& block = model.blocks[layer];
    const AttentionVariantWeights weights = slot_of(pass, block, sink);
    const at::Tensor attended =
        attend(pass, block, weights, static_cast<std::int64_t>(layer), stream.x, stream.normed);
    stream = end_block(pass, model, layer, stream, attended);
    if (sink.x.defined()) sink = end_block(pass, model, layer, sink, own_value(config, weights));
  }
  return stream.normed;
}

}  // namespace sinkscope
