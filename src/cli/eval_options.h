// What `sinkscope eval` can be asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/likelihoods.h"
#include "cli/run_options.h"
#include "eval/grid.h"

namespace sinkscope {

/// Names as on the command line.
struct EvalOptions {
  RunOptions run;  // what all cells share; its sink_top_k, rank and control are each cell's own
  std::string tasks;
  std::string data_dir;
  std::string shots;
  std::string responses;
  std::optional<std::int64_t> num_fewshot;
  std::optional<std::int64_t> limit;
  std::optional<std::int64_t> gen_len, steps, block_len;  // empty: the task's
  std::string sink_top_k = "0";
  std::string sink_rank = "usual";
  std::string sink_control = "none";
  bool confirm_run_unsafe_code = false;
  LikelihoodSettings likelihoods;
  std::int64_t resamples = 10000;
  bool json = false;
};

void declare_eval_options(CLI::App& command, OptionTable& table, EvalOptions& options);

/// Names that are kept out of eval.json and are free beside --resume.
const std::vector<std::string>& unrecorded_eval_options();

/// Parses the names and checks all that needs neither model nor data. Throws UsageError naming the option.
void resolve(EvalOptions& options);

/// The grid; `usual` is the rank that the model's kind has by default.
std::vector<Cell> cells_of(const EvalOptions& options, const std::string& usual);

/// The run of one cell over one task.
RunOptions run_of(const EvalOptions& options, const Cell& cell, std::int64_t task_gen_len,
                  const std::vector<std::string>& until, bool autoregressive);

}  // namespace sinkscope
