#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/transformer.h>

#include "model/forward_pass.h"
#include "model/text_length.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "ops/vocabulary_head.h"

namespace sinkscope {
namespace {

void check_tokens(const TokenBatch& batch, const ModelConfig& config) {
  for (std::size_t i = 0; i < batch.ids.size(); ++i)
    if (batch.ids[i] < 0 || batch.ids[i] >= config.embedding_rows)
      throw UsageError("token id {} at place {} is outside the model's embedding of {} rows", batch.ids[i], i,
                       config.embedding_rows);
}

void check_ends(const ForwardRequest& request, const ModelConfig& config) {
  if (config.attention.positions != PositionEncoding::learned) return;
  for (std::int64_t b = 0; b < request.tokens.sequences(); ++b) {
    const std::int64_t first =
        request.cached == nullptr ? 0 : request.cached->first_positions[static_cast<std::size_t>(b)];
    check_positions(config, first + request.tokens.offsets[b + 1] - request.tokens.offsets[b],
                    fmt::format("sequence {}", b));
  }
}

void check_cached(const CachedTokens& cached, const TokenBatch& batch) {
  for (std::int64_t b = 0; b < batch.sequences(); ++b) {
    const std::int64_t slot = cached.slots.at(static_cast<std::size_t>(b));
    const std::int64_t first = cached.first_positions.at(static_cast<std::size_t>(b));
    const std::int64_t count = batch.offsets[b + 1] - batch.offsets[b];
    if (slot < 0 || slot >= cached.cache->slots() || first < 0 || first > cached.cache->length(slot) ||
        first + count > cached.cache->capacity(slot))
      throw UsageError(
          "positions {} to {} do not fit slot {} of a cache that holds {} of at most {} positions", first,
          first + count - 1, slot, slot < cached.cache->slots() ? cached.cache->length(slot) : 0,
          slot < cached.cache->slots() ? cached.cache->capacity(slot) : 0);
  }
}

}  // namespace

ForwardWorkspace::ForwardWorkspace() : impl_(std::make_unique<Impl>()) {}
ForwardWorkspace::~ForwardWorkspace() = default;

Transformer::Transformer(std::shared_ptr<const Checkpoint> checkpoint, const TransformerOptions& options)
    : weights_(load_weights(std::move(checkpoint), options)) {}

ForwardResult Transformer::forward(const ForwardRequest& request, ForwardWorkspace& workspace) const {
  check_tokens(request.tokens, config());
  if (request.cached != nullptr) check_cached(*request.cached, request.tokens);
  check_ends(request, config());
  return ForwardPass(*weights_, request, workspace).run();
}

ForwardResult Transformer::forward(const ForwardRequest& request) const {
  ForwardWorkspace workspace;
  ForwardResult result = forward(request, workspace);
  if (result.hidden.defined()) result.hidden = result.hidden.clone();
  return result;
}

at::Tensor Transformer::logits_of(const at::Tensor& hidden) const {
  const PassShape shape = pass_shape(config(), weights_->dtype, weights_->format, weights_->backend);
  Arena arena;
  arena.reserve(plan_pass(shape, hidden.size(0)));
  const std::vector<std::int64_t> offsets{0, hidden.size(0)};
  ProductInput normed = take_input(arena, shape, hidden.size(0), shape.width);
  prepare_for_head(*weights_, hidden, normed);
  return vocabulary_logits(weights_->head, normed, plan_rows(offsets));
}

const ModelConfig& Transformer::config() const { return weights_->checkpoint->config(); }
at::ScalarType Transformer::dtype() const { return weights_->dtype; }
const at::Device& Transformer::device() const { return weights_->device; }

WeightFormat Transformer::weight_format() const { return weights_->format; }

std::string Transformer::implementation() const {
  if (weights_->backend == Backend::aten) return "libtorch operations";
  const std::string kernels = std::string(cpu_kernels().name) + " kernels";
  if (weights_->format == WeightFormat::int8)
    return fmt::format("oneDNN products of 8-bit integers (inputs of {} levels), {}", quantised_levels() + 1,
                       kernels);
  if (weights_->dtype == at::kFloat) return "oneDNN float32 products, " + kernels;
  if (has_bfloat16_products()) return "oneDNN bfloat16 products, " + kernels;
  return "oneDNN float32 products of widened bfloat16 weights, " + kernels;
}

}  // namespace sinkscope
