#include "train/objective.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/random_bits.h"

namespace sinkscope {
namespace {

constexpr double least_noise = 1e-3;

struct Predictions {
  std::vector<std::int64_t> rows, targets;
  std::vector<float> weights;

  void add(std::int64_t row, std::int64_t target, double weight) {
    rows.push_back(row);
    targets.push_back(target);
    weights.push_back(static_cast<float>(weight));
  }
};

template <typename T>
at::Tensor tensor_of(const std::vector<T>& values) {
  return at::tensor(at::ArrayRef<T>(values));
}

std::int64_t predictable_in(const TrainingBatch& batch, std::int64_t row) {
  const auto begin = batch.predictable.begin() + row * batch.length;
  return std::accumulate(begin, begin + batch.length, std::int64_t{0});
}

// Writes masks into ids.
Predictions mask_tokens(const TrainingBatch& batch, const TrainConfig& config, std::int64_t mask_id,
                        std::int64_t number, double share, std::int64_t* ids) {
  const RandomPlaces levels(config.seed, "level", static_cast<std::uint64_t>(number));
  const RandomPlaces noise(config.seed, "noise", static_cast<std::uint64_t>(number));
  const auto all = static_cast<double>(
      std::accumulate(batch.predictable.begin(), batch.predictable.end(), std::int64_t{0}));
  Predictions predictions;
  for (std::int64_t b = 0; b < batch.rows; ++b) {
    const double place = static_cast<double>(b) / static_cast<double>(batch.rows) + levels.uniform(0);
    const double p = (1 - least_noise) * (place - std::floor(place)) + least_noise;
    const double divisor =
        config.data.answer_only ? static_cast<double>(batch.rows * predictable_in(batch, b)) : all;
    for (std::int64_t i = b * batch.length; i < (b + 1) * batch.length; ++i) {
      if (batch.predictable[static_cast<std::size_t>(i)] == 0) continue;
      if (noise.uniform(static_cast<std::uint64_t>(i)) >= p) continue;
      predictions.add(i, ids[i], share / (p * divisor));
      ids[i] = mask_id;
    }
  }
  return predictions;
}

// Tokens of the prefix are seen by those before them and not asked for.
Predictions next_tokens(const TrainingBatch& batch, std::int64_t prefix, double share,
                        const std::int64_t* ids) {
  Predictions predictions;
  for (std::int64_t b = 0; b < batch.rows; ++b)
    for (std::int64_t i = b * batch.length; i + 1 < (b + 1) * batch.length; ++i) {
      const std::int64_t target = i + 1;
      if (target - b * batch.length < prefix) continue;
      if (batch.predictable[static_cast<std::size_t>(target)] != 0) predictions.add(i, ids[target], 1);
    }
  for (float& weight : predictions.weights)
    weight = static_cast<float>(share / static_cast<double>(predictions.rows.size()));
  return predictions;
}

}  // namespace

TrainingTask make_task(const TrainingBatch& batch, const TrainConfig& config, std::int32_t mask_id,
                       std::int64_t number, double share) {
  TrainingTask task{batch.rows, batch.length, at::empty({batch.rows * batch.length}, at::kLong), {}};
  auto* ids = task.ids.data_ptr<std::int64_t>();
  std::copy(batch.ids.begin(), batch.ids.end(), ids);
  const Predictions predictions = config.objective == Objective::masked_diffusion
                                      ? mask_tokens(batch, config, mask_id, number, share, ids)
                                      : next_tokens(batch, config.model.attention.prefix, share, ids);
  task.predicted = {tensor_of(predictions.rows), tensor_of(predictions.targets),
                    tensor_of(predictions.weights)};
  return task;
}

}  // namespace sinkscope
