// What a batch asks of the model, and how much each answer counts.
#pragma once

#include <cstdint>

#include "ops/differentiable/cross_entropy.h"
#include "train/batches.h"

namespace sinkscope {

/// One pass: what goes in, and the predictions the loss is made of.
struct TrainingTask {
  std::int64_t rows = 0;
  std::int64_t length = 0;
  at::Tensor ids;           // int64 [B T]
  PredictedRows predicted;  // of the B T rows of the last layer
};

/// Masked diffusion (LLaDA): row b draws t_b, evenly spread over [0, 1) with a random start (each t_b is
/// uniform, the batch covers all); each predictable token is masked with probability p = (1 - 1e-3) t + 1e-3
/// and weighs 1 / p. The loss is
///   sum over masked CE / p, divided by the predictable tokens of the batch, or
///   answer-only: the mean over rows of the same sum divided by the row's predictable tokens.
/// Autoregressive: every predictable token behind the first is predicted from the one before it; the mean.
/// With a prefix of n tokens those at positions below n are seen by all and not asked for.
/// Noise is a function of the seed and of `number`, the batch's. `share` scales all weights.
TrainingTask make_task(const TrainingBatch& batch, const TrainConfig& config, std::int32_t mask_id,
                       std::int64_t number, double share);

}  // namespace sinkscope
