#include "train/batches.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <numeric>

#include "base/random_bits.h"

namespace sinkscope {
namespace {

constexpr std::int64_t batches_of_a_pool = 32;

void shuffle(std::vector<std::int64_t>& values, const RandomPlaces& random) {
  for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[random.below(i, i)]);
}

// Sorted by length inside pools, so that rows of a batch are about as long as each other.
void sort_in_pools(std::vector<std::int64_t>& order, std::int64_t pool, const TokenCache& cache) {
  const auto length = [&](std::int64_t document) { return cache.document(document).ids.size(); };
  for (std::size_t begin = 0; begin < order.size(); begin += static_cast<std::size_t>(pool)) {
    const auto end = std::min(order.size(), begin + static_cast<std::size_t>(pool));
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(begin),
                     order.begin() + static_cast<std::ptrdiff_t>(end),
                     [&](std::int64_t a, std::int64_t b) { return length(a) < length(b); });
  }
}

}  // namespace

BatchOrder::BatchOrder(const TokenCache& cache, const TrainConfig& config, std::int32_t eos)
    : cache_(cache), config_(config), eos_(eos) {
  const bool rows = config.data.layout == DataLayout::rows;
  // The first piece of an epoch may begin up to context - 1 tokens late.
  const std::int64_t units = rows ? cache.documents() : (cache.tokens() + 1) / config.context - 1;
  batches_per_epoch_ = units / config.batch;
  if (batches_per_epoch_ < 1)
    throw Error("the data are {} {}; a batch of {} needs more", std::max<std::int64_t>(units, 0),
                rows ? "texts" : fmt::format("pieces of {} tokens", config.context), config.batch);
}

void BatchOrder::begin_epoch(std::int64_t epoch) {
  epoch_ = epoch;
  const RandomPlaces random(config_.seed, "order", static_cast<std::uint64_t>(epoch));
  const bool rows = config_.data.layout == DataLayout::rows;
  order_.resize(static_cast<std::size_t>(rows ? cache_.documents() : batches_per_epoch_ * config_.batch));
  std::iota(order_.begin(), order_.end(), std::int64_t{0});
  shuffle(order_, random);
  first_token_ = static_cast<std::int64_t>(random.below(0, static_cast<std::uint64_t>(config_.context)));
  if (!rows) return;
  sort_in_pools(order_, batches_of_a_pool * config_.batch, cache_);
  std::vector<std::int64_t> batches(static_cast<std::size_t>(batches_per_epoch_));
  std::iota(batches.begin(), batches.end(), std::int64_t{0});
  shuffle(batches, RandomPlaces(config_.seed, "batches", static_cast<std::uint64_t>(epoch)));
  std::vector<std::int64_t> shuffled;
  for (const std::int64_t batch : batches)
    shuffled.insert(shuffled.end(), order_.begin() + batch * config_.batch,
                    order_.begin() + (batch + 1) * config_.batch);
  order_ = std::move(shuffled);
}

TrainingBatch BatchOrder::batch(std::int64_t number) {
  const std::int64_t epoch = number / batches_per_epoch_, in_epoch = number % batches_per_epoch_;
  if (epoch != epoch_) begin_epoch(epoch);
  return config_.data.layout == DataLayout::rows ? rows_batch(number, in_epoch) : joined_batch(in_epoch);
}

TrainingBatch BatchOrder::rows_batch(std::int64_t number, std::int64_t in_epoch) const {
  const auto document = [&](std::int64_t row) {
    return cache_.document(order_[static_cast<std::size_t>(in_epoch * config_.batch + row)]);
  };
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < config_.batch; ++row)
    longest = std::max(longest, static_cast<std::int64_t>(document(row).ids.size()));
  const RandomPlaces random(config_.seed, "fill", static_cast<std::uint64_t>(number));
  longest += static_cast<std::int64_t>(random.below(0, static_cast<std::uint64_t>(config_.data.fill) + 1));
  TrainingBatch batch{config_.batch, std::min(config_.context, (longest + 7) / 8 * 8), {}, {}};
  const bool fills = config_.objective == Objective::masked_diffusion;
  batch.ids.assign(static_cast<std::size_t>(batch.rows * batch.length), eos_);
  batch.predictable.assign(batch.ids.size(), fills ? 1 : 0);
  for (std::int64_t row = 0; row < config_.batch; ++row) put(document(row), row, batch);
  return batch;
}

void BatchOrder::put(const TokenDocument& document, std::int64_t row, TrainingBatch& batch) const {
  const std::int64_t count = std::min(batch.length, static_cast<std::int64_t>(document.ids.size()));
  const std::int64_t first = config_.data.answer_only ? document.prompt_length : 0;
  std::copy_n(document.ids.begin(), count, batch.ids.begin() + row * batch.length);
  for (std::int64_t i = 0; i < count; ++i)
    batch.predictable[static_cast<std::size_t>(row * batch.length + i)] = i >= first ? 1 : 0;
}

TrainingBatch BatchOrder::joined_batch(std::int64_t in_epoch) const {
  TrainingBatch batch{config_.batch, config_.context, {}, {}};
  const std::span<const std::int32_t> ids = cache_.ids();
  for (std::int64_t row = 0; row < config_.batch; ++row) {
    const std::int64_t piece = order_[static_cast<std::size_t>(in_epoch * config_.batch + row)];
    const auto begin = ids.begin() + first_token_ + piece * config_.context;
    batch.ids.insert(batch.ids.end(), begin, begin + config_.context);
  }
  batch.predictable.assign(batch.ids.size(), 1);
  return batch;
}

}  // namespace sinkscope
