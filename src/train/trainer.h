// A training run: steps, metrics, checkpoints.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "train/train_config.h"

namespace sinkscope {

/// What a line of metrics.jsonl says of the steps since the line before.
struct StepReport {
  std::int64_t step = 0;
  double loss = 0;           // what is minimised, mean
  double token_loss = 0;     // nats per predicted token, unweighted, mean
  double gradient_norm = 0;  // before clipping, of this step
  double learning_rate = 0;
  double tokens_per_second = 0;  // tokens that went through the model, fill included
};

struct TrainingRun {
  std::filesystem::path folder;
  bool resume = false;  // go on from the newest checkpoint
  at::Device device = at::kCPU;
  /// Memory that training may take; none: whatever it needs.
  std::optional<std::int64_t> available_bytes = std::nullopt;
  /// Said of what is about to be done ("tokens") with the share done.
  std::function<void(const char* what, double share)> preparing = {};
  std::function<void(const StepReport&)> stepped = {};
  std::function<void(const std::string&)> note = {};
  /// Becomes true: the step in work ends, a checkpoint is written, train() returns.
  const std::atomic<bool>* stop = nullptr;
};

struct TrainingEnd {
  std::int64_t step = 0;
  std::int64_t parameters = 0;
  bool finished = false;
};

/// Trains up to config.steps. The folder gets
///
///     training.json        the config as it was given
///     tokenizer/           the tokenizer's files, and the chat template
///     tokens.bin           the data, tokenised; probe.bin likewise
///     metrics.jsonl        a line every log_every steps, and the probes
///     checkpoints/step-N/  models (training_checkpoint.h)
///     latest               leads to the newest of them
///
/// A run that was killed at any moment and goes on with `resume` ends with the same weights, bit for bit on
/// the same device, and the thread count does not matter. Throws Error when the folder holds another run,
/// when it holds one and resume was not asked for, when the parameters with their gradients and moments alone
/// would take more than available_bytes, or when a loss is not finite. A new run that cannot begin leaves
/// nothing behind.
TrainingEnd train(const TrainConfig& config, const TrainingRun& run);

}  // namespace sinkscope
