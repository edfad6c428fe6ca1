// A model whose weights can be trained: float32 parameters, and a forward pass that autograd can go back
// through.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/model_config.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/shapes.h"
#include "ops/attention_variant.h"
#include "ops/backend.h"
#include "ops/differentiable/matrix_product.h"

namespace sinkscope {

/// A parameter under the name that the checkpoint gives it.
struct NamedParameter {
  std::string name;
  at::Tensor value;  // float32, requires grad
  bool is_matrix() const { return value.dim() == 2; }
};

struct TrainableBlock {
  at::Tensor attention_norm, query, key, value, attention_out, mlp_norm, gate, up, down;
  AttentionVariantWeights variant;  // as stored: the slot's key may have fewer coordinates than a head
};

struct TrainableModel {
  ModelShape shape;                        // its config and how it is written
  std::vector<NamedParameter> parameters;  // in the order a checkpoint stores them
  // The same tensors by their place in the model.
  at::Tensor embedding, final_norm, head;
  at::Tensor position_table, sink_token;  // undefined: none; sinusoids are no parameter
  std::vector<TrainableBlock> blocks;

  const ModelConfig& config() const { return shape.config; }
  std::int64_t parameter_count() const;
  /// The tensors alone.
  std::vector<at::Tensor> tensors() const;
};

/// Parameters that a model of this config has.
double parameter_count(const ModelConfig& config);

/// Weights about normal with deviation 0.02, those that write into the residual stream smaller by
/// sqrt(2 layers), norms 1; a function of the seed. Names and order as Checkpoint reads them.
TrainableModel new_model(const ModelConfig& config, std::uint64_t seed, const at::Device& device);

/// What one layer's attention looks at; q and k are rotated where the model rotates.
struct LayerStates {
  std::int64_t layer;
  const at::Tensor& entering;  // [B T, width], the residual stream before the block
  const at::Tensor& query;     // [B, T, H, D]
  const at::Tensor& key;       // [B, T, KV, D]
  const at::Tensor& value;
  VariantOfLayer variant;  // null where the attention is the usual one
};

/// ids int64 [B T] of B rows -> the normed rows [B T, width] that the head multiplies: as
/// Transformer::forward, in float32 but for the factors of products. `observe` sees every layer.
at::Tensor hidden_rows(const TrainableModel& model, const at::Tensor& ids, std::int64_t rows,
                       ProductPrecision precision,
                       const std::function<void(const LayerStates&)>& observe = {});

}  // namespace sinkscope
