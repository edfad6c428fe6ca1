#include "train/trainable_model.h"

#include <ATen/ops/empty.h>
#include <sinkscope/error.h>

#include <cmath>
#include <numeric>

#include "model/block_names.h"
#include "ops/differentiable/attention.h"
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
          named(model, names.down)};
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

// [B T, width] -> [B T, width] before the output matrix.
at::Tensor attend(const Pass& pass, const TrainableBlock& block, std::int64_t layer, const at::Tensor& x,
                  const at::Tensor& normed) {
  const ModelConfig& config = pass.config;
  const std::vector<at::Tensor> projected =
      linear(pass.backend, normed, {block.query, block.key, block.value}, {}, pass.precision);
  const auto heads = [&](const at::Tensor& t, std::int64_t count) {
    return t.view({pass.rows, pass.length, count, config.head_dim});
  };
  const at::Tensor q = rope(pass.backend, heads(projected[0], config.heads), pass.rope);
  const at::Tensor k = rope(pass.backend, heads(projected[1], config.kv_heads), pass.rope);
  const at::Tensor v = heads(projected[2], config.kv_heads);
  if (pass.observe) pass.observe({layer, x, q, k, v});
  const AttentionMask mask{config.causal(), 0, config.window_of(layer)};
  const double scale = 1 / std::sqrt(static_cast<double>(config.head_dim));
  const at::Tensor out = attention(pass.backend, q, k, v, scale, mask, pass.precision);
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
  TrainableModel model{shape_of(config), {}, {}, {}, {}, {}};
  for (const RandomTensor& tensor : model.shape.weights(config))
    model.parameters.push_back({tensor.name, random_parameter(tensor, seed, device)});
  const OuterNames outer = outer_names(config);
  model.embedding = named(model, outer.embedding);
  model.final_norm = named(model, outer.final_norm);
  model.head = config.tied_head ? model.embedding : named(model, outer.head);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) model.blocks.push_back(block_of(model, layer));
  return model;
}

at::Tensor hidden_rows(const TrainableModel& model, const at::Tensor& ids, std::int64_t rows,
                       ProductPrecision precision, const std::function<void(const LayerStates&)>& observe) {
  const ModelConfig& config = model.config();
  const Backend backend = backend_of(model.embedding);
  const std::int64_t length = ids.numel() / rows;
  const Pass pass{config,
                  backend,
                  rows,
                  length,
                  rope_table(length, {.head_dim = config.head_dim, .theta = config.rope_theta}, ids.device()),
                  precision,
                  observe};
  at::Tensor x = embedding(backend, model.embedding, ids);
  at::Tensor normed = rms_norm(backend, x, model.blocks.front().attention_norm, config.norm_eps);
  for (std::size_t layer = 0; layer < model.blocks.size(); ++layer) {
    const TrainableBlock& block = model.blocks[layer];
    const at::Tensor attended = attend(pass, block, static_cast<std::int64_t>(layer), x, normed);
    const AddedNorm middle =
        add_rms_norm(backend, x, linear(backend, attended, block.attention_out, {}, precision),
                     block.mlp_norm, config.norm_eps);
    const bool last = layer + 1 == model.blocks.size();
    const AddedNorm end =
        add_rms_norm(backend, middle.sum, feed_forward(pass, block, middle.normed),
                     last ? model.final_norm : model.blocks[layer + 1].attention_norm, config.norm_eps);
    x = end.sum;
    normed = end.normed;
  }
  return normed;
}

}  // namespace sinkscope
