// What `sinkscope run` can be asked for.
#pragma once

#include <sinkscope/run_directory.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/prompts.h"
#include "cli/sampling_options.h"

namespace sinkscope {

/// Names as on the command line; run.json keeps them as `options`.
struct RunOptions {
  std::string model;
  PromptOptions prompts;
  TemplateOptions chat{false, "", "", todays_date()};

  SamplingOptions sampling;
  std::string array_dtype = "f16";
  std::int64_t seed = 0;
  std::int64_t batch = 1;
  bool deviation = false;
  std::string shard;        // "2/8": every eighth sample from the third on; empty: all
  bool shows_texts = true;  // on standard output

  ModelOptions common;
  std::string out = "runs";
  std::string run_dir;
  std::string resume;
};

/// Options that are the place or the manner of a run, not the run: kept out of run.json, and free beside
/// --resume.
const std::vector<std::string>& unrecorded_run_options();

void declare_run_options(CLI::App& command, OptionTable& table, RunOptions& options);

/// Parses the names and checks all that needs no model. Throws UsageError naming the option.
void resolve(RunOptions& options);

}  // namespace sinkscope
