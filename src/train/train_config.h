// What `sinkscope train` is told: docs/training.md describes every key.
#pragma once

#include <sinkscope/model_config.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"

namespace sinkscope {

enum class Objective {
  masked_diffusion,  ///< LLaDA's: t uniform, each token masked with that probability, weight 1 / probability
  autoregressive,    ///< the next token
  prefix_lm,         ///< the next token, where all see the first `prefix` tokens; those are not asked for
};

/// How texts become rows of tokens.
enum class DataLayout {
  rows,    ///< a text a row, filled with end tokens to the longest of its batch
  joined,  ///< all texts one behind the other, cut every `context` tokens
};

struct DataConfig {
  std::vector<std::filesystem::path> files;
  DataLayout layout = DataLayout::rows;
  bool answer_only = false;  // of prompt and answer, only the answer (and the end) is predicted
  /// Rows of masked diffusion are filled with 0 to this many end tokens more, one number for a batch: a model
  /// that generates is not told how long its answer will be.
  std::int64_t fill = 0;
};

struct OptimizerConfig {
  double learning_rate = 1e-3;
  double final_learning_rate = 1e-4;  // at the last step, along a half cosine
  std::int64_t warmup = 100;          // steps of linear growth from 0
  double weight_decay = 0.1;          // of matrices, not of norms
  double beta1 = 0.9;
  double beta2 = 0.95;
  double eps = 1e-8;
  double clip = 1;            // largest norm of the gradient
  std::optional<double> ema;  // decay of the averaged weights
};

struct ProbeConfig {
  std::int64_t every = 500;                  // steps; 0: never
  std::vector<std::filesystem::path> files;  // texts; empty: the data's
  std::int64_t samples = 32;
  std::int64_t positions = 64;  // shorter texts are left out, longer ones cut
};

struct TrainConfig {
  std::filesystem::path file;  // it was read from
  Objective objective = Objective::masked_diffusion;
  /// layers, heads, kv_heads, width, mlp_width, tied_head, rope_theta, norm_eps, sliding_window, attention;
  /// the rest is filled in from the tokenizer.
  ModelConfig model;
  std::filesystem::path tokenizer;
  std::optional<std::string>
      chat_template;  // Jinja, of prompts; none: the tokenizer's folder's, or none at all
  DataConfig data;
  std::int64_t context = 256;
  std::int64_t batch = 32;      // rows of a pass
  std::int64_t accumulate = 1;  // passes of a step
  std::int64_t steps = 1000;
  OptimizerConfig optimizer;
  bool bfloat16 = false;  // factors of products
  std::uint64_t seed = 1;
  std::int64_t log_every = 10;
  std::int64_t checkpoint_every = 500;
  std::int64_t keep = 1;  // checkpoints from which training could go on; of older ones the model stays
  ProbeConfig probe;
  /// Of everything above that decides the weights: a run goes on only with the same.
  std::string fingerprint;
};

/// Relative paths are looked for beside the file. Throws Error naming the file, the key and what it should
/// be; a key that nobody knows is refused too.
TrainConfig read_train_config(const std::filesystem::path& file);

/// Of a config file's object, of all that decides the weights.
std::string config_fingerprint(const Json& config);

/// The learning rate of step 1, 2, ...: growing linearly up to `warmup`, then down a half cosine.
double learning_rate_at(const TrainConfig& config, std::int64_t step);

/// "masked-diffusion", ...
std::string_view objective_name(Objective objective);

}  // namespace sinkscope
