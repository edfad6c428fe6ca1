#include "model/forward_pass.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "model/experts.h"
#include "ops/l2_norm.h"
#include "ops/projection.h"
#include "ops/rms_norm.h"
#include "ops/vocabulary_head.h"

namespace sinkscope {
namespace {

at::Tensor index_of(const std::vector<std::int64_t>& tokens) {
  return at::tensor(at::ArrayRef<std::int64_t>(tokens), at::TensorOptions(at::kLong));
}

std::int64_t first_position(const ForwardRequest& request, std::int64_t sequence) {
  return request.cached == nullptr ? 0 : request.cached->first_positions[static_cast<std::size_t>(sequence)];
}

// A sink token stands in front of all others.
std::int64_t first_place(const ModelConfig& config) {
  return config.attention.slot == KeySlot::sink_token ? 1 : 0;
}

// Positions grow from `shift` on.
PassRows all_rows(const ForwardRequest& request, std::int64_t shift) {
  const TokenBatch& batch = request.tokens;
  at::Tensor positions = at::empty({batch.tokens()}, at::TensorOptions(at::kLong));
  for (std::int64_t b = 0; b < batch.sequences(); ++b)
    for (std::int64_t i = batch.offsets[b]; i < batch.offsets[b + 1]; ++i)
      positions.data_ptr<std::int64_t>()[i] = first_position(request, b) + i - batch.offsets[b] + shift;
  return {batch.offsets, plan_rows(batch.offsets), positions, nullptr};
}

PassRows wanted_rows(const ForwardRequest& request, const PassRows& all) {
  if (!request.wanted || request.wanted->size() == request.tokens.ids.size()) return all;
  const std::vector<std::int64_t>& wanted = *request.wanted;
  std::vector<std::int64_t> offsets;
  for (const std::int64_t offset : request.tokens.offsets)
    offsets.push_back(std::lower_bound(wanted.begin(), wanted.end(), offset) - wanted.begin());
  return {offsets, plan_rows(offsets), at::index_select(all.positions, 0, index_of(wanted)), &wanted};
}

// Behind the last position of any sequence of the batch.
std::int64_t positions_needed(const ForwardRequest& request) {
  const TokenBatch& batch = request.tokens;
  std::int64_t longest = 0;
  for (std::int64_t b = 0; b < batch.sequences(); ++b)
    longest = std::max(longest, first_position(request, b) + batch.offsets[b + 1] - batch.offsets[b]);
  return longest;
}

RopeOptions rope_options(const ModelConfig& config, at::ScalarType dtype) {
  return {config.head_dim, config.rope_theta, config.rope_factor, config.llama3_scaling,
          config.rope_in_storage ? dtype : at::kFloat};
}

bool observes(const ForwardRequest& request) {
  return request.capture != Capture::none || !request.maps.empty() || request.removed != nullptr ||
         request.row_removed.keys != nullptr || request.rows.asks() || request.look != nullptr;
}

// Rows of the embedding in the storage dtype, cast to the model's; into x where there is room.
void embed(const TransformerWeights& weights, const TokenBatch& batch, at::Tensor& x) {
  const at::Tensor ids = at::tensor(at::ArrayRef<std::int32_t>(batch.ids), at::TensorOptions(at::kInt))
                             .to(weights.embedding.device());
  if (!x.defined())
    x = at::index_select(weights.embedding, 0, ids).to(weights.dtype);
  else if (weights.embedding.scalar_type() == weights.dtype)
    at::index_select_out(x, weights.embedding, 0, ids);
  else
    x.copy_(at::index_select(weights.embedding, 0, ids));
}

}  // namespace

void prepare_for_head(const TransformerWeights& weights, const at::Tensor& x, ProductInput& input) {
  if (!weights.final_norm.defined())
    prepare_input(weights.backend, x, input);
  else
    prepare_normed(weights.backend, x, weights.final_norm, weights.checkpoint->config().norm_eps, input);
}

ForwardPass::ForwardPass(const TransformerWeights& weights, const ForwardRequest& request,
                         ForwardWorkspace& workspace)
    : weights_(weights),
      config_(weights.checkpoint->config()),
      request_(request),
      workspace_(*workspace.impl_),
      shape_(pass_shape(config_, weights.dtype, weights.format, weights.backend)),
      arena_(workspace.impl_->arena),
      all_(all_rows(request, first_place(config_))),
      wanted_(wanted_rows(request, all_)),
      rope_(workspace_.rope.at_least(positions_needed(request) + first_place(config_),
                                     rope_options(config_, weights.dtype), weights.device)) {
  if (request.cached == nullptr) return;
  const CachedTokens& cached = *request.cached;
  for (std::int64_t b = 0; b < request.tokens.sequences(); ++b) {
    const std::int64_t slot = cached.slots[static_cast<std::size_t>(b)];
    const std::int64_t first = first_position(request, b);
    const std::int64_t count = request.tokens.offsets[b + 1] - request.tokens.offsets[b];
    keys_.push_back({cached.cache->begins_[static_cast<std::size_t>(slot)],
                     std::max(cached.cache->length(slot), first + count), first});
  }
}

const PassRows& ForwardPass::rows_after(std::int64_t layer) const {
  return layer + 1 == config_.layers && !request_.hidden_norms ? wanted_ : all_;
}

ForwardResult ForwardPass::run() {
  if (weights_.backend == Backend::cpu) {
    arena_.reserve(plan_pass(shape_, all_.count()));
    x_ = arena_.take({all_.count(), config_.width}, weights_.dtype);
    wanted_x_ = arena_.take({all_.count(), config_.width}, weights_.dtype);
  }
  embed(weights_, request_.tokens, x_);
  add_positions();
  block_mark_ = arena_.mark();
  std::int64_t keys = 0;
  for (const KeyRange& range : keys_) keys += range.count;
  workspace_.observation.begin(config_, request_, request_.cached == nullptr ? all_.count() : keys);
  if (request_.hidden_norms) hidden_norms_.push_back(l2_norm(weights_.backend, x_));
  for (std::int64_t layer = 0; layer < config_.layers; ++layer) run_block(layer);
  advance_cache();
  ForwardResult result;
  finish(result);
  result.observation = workspace_.observation.result();
  return result;
}

void ForwardPass::add_positions() {
  at::Tensor table = weights_.position_table;
  if (config_.attention.positions == PositionEncoding::sinusoid)
    table = sinusoid_table(all_.positions.max().item<std::int64_t>() + 1, config_.width)
                .to(weights_.device, weights_.dtype);
  if (table.defined()) x_ = x_ + at::index_select(table, 0, all_.positions.to(weights_.device));
}

void ForwardPass::prepare_part(const at::Tensor& norm, ProductInput& input) const {
  if (config_.attention.post_norm)
    prepare_input(weights_.backend, x_, input);
  else
    prepare_normed(weights_.backend, x_, norm, config_.norm_eps, input);
}

void ForwardPass::end_part(const at::Tensor& norm) {
  if (config_.attention.post_norm) x_ = rms_norm(x_, norm, config_.norm_eps);
}

// x += attention_out(attention(rms_norm(x))); x += down(silu(gate(h)) * up(h)), h = rms_norm(x)
void ForwardPass::run_block(std::int64_t layer) {
  const PassRows& rows = rows_after(layer);
  arena_.back_to(block_mark_);
  attend(layer, rows);
  arena_.back_to(block_mark_);
  feed_forward(weights_.blocks[static_cast<std::size_t>(layer)], rows);
  if (request_.hidden_norms) hidden_norms_.push_back(l2_norm(weights_.backend, x_));
}

// x becomes those of its rows.
void ForwardPass::keep_rows(const PassRows& rows) {
  if (rows.tokens == nullptr) return;
  const at::Tensor index = index_of(*rows.tokens).to(weights_.device);
  if (weights_.backend == Backend::cpu) {
    at::Tensor kept = wanted_x_.narrow(0, 0, rows.count());
    x_ = at::index_select_out(kept, x_, 0, index);
  } else {
    x_ = at::index_select(x_, 0, index);
  }
}

const at::Tensor* if_defined(const at::Tensor& tensor) { return tensor.defined() ? &tensor : nullptr; }

// Queries of some rows, keys and values of all; queries and keys rotated. Afterwards x holds the rows that
// leave the block.
void ForwardPass::project_heads(const BlockWeights& block, const PassRows& queries,
                                AttentionBuffers& buffers) {
  const Rotation key_rotation{&rope_, &all_.positions, config_.head_dim};
  const Rotation query_rotation{&rope_, &queries.positions, config_.head_dim};
  const HeadNorm query_norm{&block.query_norm, config_.norm_eps};
  const HeadNorm key_norm{&block.key_norm, config_.norm_eps};
  const bool rotates = config_.attention.positions == PositionEncoding::rope;
  const Projection query{&block.query, &buffers.query, rotates ? &query_rotation : nullptr,
                         if_defined(block.query_bias), config_.qk_norm ? &query_norm : nullptr};
  const Projection key{&block.key, &buffers.key, rotates ? &key_rotation : nullptr,
                       if_defined(block.key_bias), config_.qk_norm ? &key_norm : nullptr};
  const Projection value{&block.value, &buffers.value, nullptr, if_defined(block.value_bias)};
  prepare_part(block.attention_norm, buffers.normed);
  if (queries.tokens == nullptr) {
    project({query, key, value}, buffers.normed, all_.plan);
    return;
  }
  project({key, value}, buffers.normed, all_.plan);
  keep_rows(queries);
  prepare_part(block.attention_norm, buffers.wanted_normed);
  project({query}, buffers.wanted_normed, queries.plan);
}

std::pair<at::Tensor, at::Tensor> ForwardPass::keys_and_values(std::int64_t layer,
                                                               const AttentionBuffers& buffers) const {
  if (request_.cached == nullptr) return {buffers.key, buffers.value};
  const KeyValueCache& cache = *request_.cached->cache;
  const at::Tensor& keys = cache.keys_[static_cast<std::size_t>(layer)];
  const at::Tensor& values = cache.values_[static_cast<std::size_t>(layer)];
  for (std::size_t b = 0; b < keys_.size(); ++b) {
    const std::int64_t first = all_.offsets[b];
    const std::int64_t count = all_.offsets[b + 1] - first;
    keys.narrow(0, keys_[b].begin + keys_[b].first_query, count).copy_(buffers.key.narrow(0, first, count));
    values.narrow(0, keys_[b].begin + keys_[b].first_query, count)
        .copy_(buffers.value.narrow(0, first, count));
  }
  return {keys, values};
}

// [K, Hkv]; values [rows, Hkv, head_dim]
at::Tensor ForwardPass::norms_of_values(const at::Tensor& values) const {
  if (request_.cached == nullptr) return l2_norm(weights_.backend, values);
  std::vector<at::Tensor> norms;
  for (const KeyRange& range : keys_)
    norms.push_back(l2_norm(weights_.backend, values.narrow(0, range.begin, range.count)));
  return at::cat(norms);
}

void ForwardPass::advance_cache() const {
  for (std::size_t b = 0; b < keys_.size(); ++b)
    request_.cached->cache->lengths_[static_cast<std::size_t>(request_.cached->slots[b])] = keys_[b].count;
}

AttentionRequest ForwardPass::attention_request(std::int64_t layer, const PassRows& queries,
                                                const PassRows& outputs) const {
  AttentionRequest request;
  request.columns = request_.capture != Capture::none;
  request.statistics = request_.capture == Capture::full;
  std::int64_t keys = all_.count();
  if (request_.cached != nullptr) {
    keys = 0;
    for (const KeyRange& range : keys_) keys += range.count;
  }
  if (request_.removed != nullptr) request.removed = request_.removed + layer * config_.heads * keys;
  request.row_removed = request_.row_removed;
  if (request.row_removed.keys != nullptr)
    request.row_removed.keys += layer * config_.heads * all_.count() * request.row_removed.room;
  request.change = request_.change;
  request.rows = request_.rows;
  request.query_tokens = queries.tokens;
  request.output_tokens = outputs.tokens;
  if (config_.attention.changes_attention())
    request.layer_variant = {&config_.attention, &weights_.blocks[static_cast<std::size_t>(layer)].variant};
  for (const LayerHead& map : request_.maps)
    if (map.layer == layer) request.map_heads.push_back(map.head);
  return request;
}

void ForwardPass::attend(std::int64_t layer, const PassRows& outputs) {
  const BlockWeights& block = weights_.blocks[static_cast<std::size_t>(layer)];
  // Without anybody looking, queries that leave no output need not exist.
  const PassRows& queries = observes(request_) ? all_ : outputs;
  AttentionBuffers buffers =
      take_attention_buffers(arena_, shape_, {all_.count(), queries.count(), outputs.count()});
  project_heads(block, queries, buffers);
  const auto heads_of = [&](const at::Tensor& t, std::int64_t heads) {
    return t.view({t.size(0), heads, config_.head_dim});
  };
  const at::Tensor query = heads_of(buffers.query, config_.heads);
  if (request_.look)
    request_.look(
        {layer, query, heads_of(buffers.key, config_.kv_heads), heads_of(buffers.value, config_.kv_heads)});
  const auto [key_rows, value_rows] = keys_and_values(layer, buffers);
  const at::Tensor keys = heads_of(key_rows, config_.kv_heads);
  const at::Tensor values = heads_of(value_rows, config_.kv_heads);
  const AttentionLayout layout{request_.tokens.offsets,  request_.tokens.query_class, keys_, config_.causal(),
                               config_.window_of(layer), config_.attention.prefix};
  AttentionObservation seen = workspace_.observation.layer(layer);
  attention(weights_.backend, query, keys, values, layout, attention_request(layer, queries, outputs),
            buffers.output, seen);
  workspace_.observation.end_layer(layer, seen);
  if (request_.capture == Capture::full)
    workspace_.observation.set_value_norm(layer, norms_of_values(values));
  if (x_.size(0) != outputs.count()) keep_rows(outputs);
  prepare_input(weights_.backend, buffers.output, buffers.prepared);
  project_add(block.attention_out, if_defined(block.output_bias), buffers.prepared, outputs.plan, x_);
  end_part(block.attention_norm);
}

void ForwardPass::feed_forward(const BlockWeights& block, const PassRows& rows) {
  if (config_.experts) {
    ExpertsBuffers buffers = take_experts_buffers(arena_, shape_, rows.count());
    feed_forward_experts(weights_, block, rows.offsets, rows.plan, buffers, x_);
    return;
  }
  MlpBuffers buffers = take_mlp_buffers(arena_, shape_, rows.count());
  prepare_part(block.mlp_norm, buffers.normed);
  project_gated(block.mlp.gate, block.mlp.up, buffers.normed, rows.plan, buffers.gated);
  prepare_input(weights_.backend, buffers.gated, buffers.prepared);
  project_add(block.mlp.down, nullptr, buffers.prepared, rows.plan, x_);
  end_part(block.mlp_norm);
}

void ForwardPass::finish(ForwardResult& result) {
  if (request_.hidden_norms) {
    result.hidden_norm = at::stack(hidden_norms_);
    keep_rows(wanted_);
  }
  result.hidden = x_;
  if (request_.head == Head::none) return;
  arena_.back_to(block_mark_);
  ProductInput normed = take_input(arena_, shape_, x_.size(0), config_.width);
  prepare_for_head(weights_, x_, normed);
  if (request_.head == Head::vocabulary)
    result.vocabulary = vocabulary_head(weights_.head, normed, wanted_.plan, request_.vocabulary);
  else
    result.logits = vocabulary_logits(weights_.head, normed, wanted_.plan);
}

}  // namespace sinkscope
