// A checkpoint of a run: a model folder that everything else reads, with what training needs to go on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/train_config.h"
#include "train/trainable_model.h"

namespace sinkscope {

/// All that a step changes.
struct TrainingState {
  TrainableModel model;
  std::vector<at::Tensor> first_moment, second_moment;  // of every parameter
  std::vector<at::Tensor> average;                      // moving averages; empty without them
  std::int64_t step = 0;                                // done
};

/// Zero moments; averages, where the config asks for them, begin as the weights.
TrainingState new_state(const TrainConfig& config, const at::Device& device);

/// RUN/checkpoints/step-00001000.
std::filesystem::path checkpoint_folder(const std::filesystem::path& run, std::int64_t step);

/// The steps of which there are checkpoints with a training state, ascending.
std::vector<std::int64_t> resumable_steps(const std::filesystem::path& run);

/// Makes the checkpoint's folder, whole or not at all: config.json, generation_config.json, model.safetensors
/// (the averages where there are any, in the config's weights dtype), the tokenizer's files,
/// training_state.safetensors (everything in float32). RUN/latest then leads to it, and of all but the newest
/// `keep` checkpoints the training state goes.
void write_checkpoint(const TrainConfig& config, const TrainingState& state, const std::filesystem::path& run,
                      const std::filesystem::path& tokenizer_folder);

/// The state of that step. Throws Error naming the file when it is of another config or does not fit.
TrainingState read_checkpoint(const TrainConfig& config, const std::filesystem::path& run, std::int64_t step,
                              const at::Device& device);

}  // namespace sinkscope
