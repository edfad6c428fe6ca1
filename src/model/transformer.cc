#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include <algorithm>

#include "model/weights.h"
#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"

namespace sinkscope {
namespace {

void check_tokens(const TokenBatch& batch, const ModelConfig& config) {
  for (std::size_t i = 0; i < batch.ids.size(); ++i)
    if (batch.ids[i] < 0 || batch.ids[i] >= config.embedding_rows)
      throw UsageError("token id {} at place {} is outside the model's embedding of {} rows", batch.ids[i], i,
                       config.embedding_rows);
}

// Position of each token in its own sequence, int64 [N].
at::Tensor positions_of(const TokenBatch& batch) {
  at::Tensor positions = at::empty({batch.tokens()}, at::TensorOptions(at::kLong));
  for (std::int64_t b = 0; b < batch.sequences(); ++b)
    for (std::int64_t i = batch.offsets[b]; i < batch.offsets[b + 1]; ++i)
      positions.data_ptr<std::int64_t>()[i] = i - batch.offsets[b];
  return positions;
}

std::int64_t longest_sequence(const TokenBatch& batch) {
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < batch.sequences(); ++b)
    longest = std::max(longest, batch.offsets[b + 1] - batch.offsets[b]);
  return longest;
}

// What every block of one forward pass shares.
struct Pass {
  const TransformerWeights& weights;
  const ModelConfig& config;
  const ForwardRequest& request;
  RopeTable rope;
  at::Tensor positions;
};

at::Tensor embed(const TransformerWeights& weights, const TokenBatch& batch) {
  const at::Tensor ids = at::tensor(at::ArrayRef<std::int32_t>(batch.ids), at::TensorOptions(at::kInt));
  return at::index_select(weights.embedding, 0, ids.to(weights.embedding.device())).to(weights.dtype);
}

AttentionRequest layer_request(const Pass& pass, std::int64_t layer) {
  const ForwardRequest& request = pass.request;
  AttentionRequest result;
  if (request.removed != nullptr)
    result.removed = request.removed + layer * pass.config.heads * request.tokens.tokens();
  result.columns = request.capture != Capture::none;
  result.statistics = request.capture == Capture::full;
  for (const LayerHead& map : request.maps)
    if (map.layer == layer) result.map_heads.push_back(map.head);
  return result;
}

struct LayerObservation {
  AttentionObservation attention;
  at::Tensor value_norm;  // [Hkv, N]
};

// x += attention_out(attention(rms_norm(x)))
LayerObservation attend(const Pass& pass, const BlockWeights& block, std::int64_t layer, at::Tensor& x) {
  const Backend backend = pass.weights.backend;
  const TokenBatch& batch = pass.request.tokens;
  const at::Tensor normed = rms_norm(backend, x, block.attention_norm, pass.config.norm_eps);
  at::Tensor q =
      block.query(normed, batch.offsets).view({batch.tokens(), pass.config.heads, pass.config.head_dim});
  at::Tensor k =
      block.key(normed, batch.offsets).view({batch.tokens(), pass.config.kv_heads, pass.config.head_dim});
  const at::Tensor v = block.value(normed, batch.offsets).view_as(k);
  apply_rope(backend, q, pass.rope, pass.positions);
  apply_rope(backend, k, pass.rope, pass.positions);
  const AttentionRequest request = layer_request(pass, layer);
  AttentionResult result = attention(backend, q, k, v, {batch.offsets, batch.query_class}, request);
  add_in_place(backend, x, block.attention_out(result.output, batch.offsets));
  LayerObservation seen{std::move(result.observation), {}};
  if (request.statistics) seen.value_norm = l2_norm(backend, v).transpose(0, 1);
  return seen;
}

// x += down(silu(gate(h)) * up(h)), h = rms_norm(x)
void feed_forward(const Pass& pass, const BlockWeights& block, at::Tensor& x) {
  const Backend backend = pass.weights.backend;
  const TokenBatch& batch = pass.request.tokens;
  const at::Tensor normed = rms_norm(backend, x, block.mlp_norm, pass.config.norm_eps);
  const at::Tensor gated =
      silu_multiply(backend, block.gate(normed, batch.offsets), block.up(normed, batch.offsets));
  add_in_place(backend, x, block.down(gated, batch.offsets));
}

// The layers' observations joined along a layer axis.
class Collector {
 public:
  explicit Collector(std::int64_t sequences) {
    result_.maps.resize(static_cast<std::size_t>(sequences));
    result_.empty_rows.assign(static_cast<std::size_t>(sequences), 0);
  }

  void add(std::int64_t layer, LayerObservation seen) {
    for (auto& [where, map] : seen.attention.maps)
      result_.maps[static_cast<std::size_t>(where.first)].emplace(LayerHead{layer, where.second},
                                                                  std::move(map));
    for (std::size_t b = 0; b < result_.empty_rows.size(); ++b)
      result_.empty_rows[b] += seen.attention.empty_rows[b];
    seen.attention.maps.clear();
    layers_.push_back(std::move(seen));
  }

  Observation finish() {
    result_.column_sum = join(1, [](const auto& l) { return l.attention.column_sum; });
    result_.column_used = join(0, [](const auto& l) { return l.attention.column_used; });
    result_.diagonal = join(0, [](const auto& l) { return l.attention.diagonal; });
    result_.diagonal_used = join(0, [](const auto& l) { return l.attention.diagonal_used; });
    result_.row_entropy = join(2, [](const auto& l) { return l.attention.row_entropy; });
    result_.row_max = join(2, [](const auto& l) { return l.attention.row_max; });
    result_.value_norm = join(0, [](const auto& l) { return l.value_norm; });
    return std::move(result_);
  }

 private:
  template <typename Member>
  at::Tensor join(std::int64_t axis, Member member) const {
    std::vector<at::Tensor> parts;
    for (const LayerObservation& layer : layers_)
      if (member(layer).defined()) parts.push_back(member(layer));
    return parts.empty() ? at::Tensor() : at::stack(parts, axis);
  }

  std::vector<LayerObservation> layers_;
  Observation result_;
};

// Rows of x and, per sequence, how many of them: what the head multiplies.
struct WantedRows {
  at::Tensor x;
  std::vector<std::int64_t> offsets;
};

WantedRows wanted_rows(const at::Tensor& x, const ForwardRequest& request) {
  if (!request.logit_tokens) return {x, request.tokens.offsets};
  const std::vector<std::int64_t>& wanted = *request.logit_tokens;
  std::vector<std::int64_t> offsets;
  for (const std::int64_t offset : request.tokens.offsets)
    offsets.push_back(std::lower_bound(wanted.begin(), wanted.end(), offset) - wanted.begin());
  const at::Tensor index = at::tensor(at::ArrayRef<std::int64_t>(wanted), at::TensorOptions(at::kLong));
  return {at::index_select(x, 0, index.to(x.device())), std::move(offsets)};
}

}  // namespace

Transformer::Transformer(std::shared_ptr<const Checkpoint> checkpoint, const TransformerOptions& options)
    : weights_(load_weights(std::move(checkpoint), options)) {}

ForwardResult Transformer::forward(const ForwardRequest& request) const {
  const ModelConfig& model = config();
  const TokenBatch& batch = request.tokens;
  check_tokens(batch, model);
  const Pass pass{*weights_, model, request,
                  rope_table(longest_sequence(batch), model.head_dim, model.rope_theta, weights_->device),
                  positions_of(batch)};
  ForwardResult result;
  Collector collector(batch.sequences());
  std::vector<at::Tensor> norms;
  at::Tensor x = embed(*weights_, batch);
  if (request.hidden_norms) norms.push_back(l2_norm(weights_->backend, x));
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    const BlockWeights& block = weights_->blocks[static_cast<std::size_t>(layer)];
    collector.add(layer, attend(pass, block, layer, x));
    feed_forward(pass, block, x);
    if (request.hidden_norms) norms.push_back(l2_norm(weights_->backend, x));
  }
  const WantedRows rows = wanted_rows(x, request);
  result.logits =
      weights_->head(rms_norm(weights_->backend, rows.x, weights_->final_norm, model.norm_eps), rows.offsets);
  if (request.hidden_norms) result.hidden_norm = at::stack(norms);
  result.observation = collector.finish();
  return result;
}

const ModelConfig& Transformer::config() const { return weights_->checkpoint->config(); }
at::ScalarType Transformer::dtype() const { return weights_->dtype; }
const at::Device& Transformer::device() const { return weights_->device; }

std::string Transformer::implementation() const {
  if (weights_->backend == Backend::aten) return "libtorch operations";
  const std::string kernels = std::string(cpu_kernels().name) + " kernels";
  if (weights_->dtype == at::kFloat) return "oneDNN float32 products, " + kernels;
  if (has_bfloat16_products()) return "oneDNN bfloat16 products, " + kernels;
  return "oneDNN float32 products of widened bfloat16 weights, " + kernels;
}

}  // namespace sinkscope
