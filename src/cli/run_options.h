// What `sinkscope run` can be asked for.
#pragma once

#include <sinkscope/llada_sampler.h>
#include <sinkscope/run_directory.h>

#include <cstdint>
#include <string>
#include <vector>

#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/prompts.h"

namespace sinkscope {

/// Names as on the command line; run.json keeps them as `options`.
struct RunOptions {
  std::string model;
  PromptOptions prompts;
  TemplateOptions chat{false, "", "", todays_date()};

  LladaOptions sampling;  // numbers and flags; the names below are parsed into it by resolve()
  std::string remasking = "low_confidence";
  std::string confidence = "f64";
  std::string sink_rule = "paper";
  std::string sink_scale = "sum";
  std::string sink_from = "raw";
  std::string capture = "columns";
  std::string maps;
  std::string array_dtype = "f16";
  std::int64_t seed = 0;
  std::int64_t batch = 1;

  ModelOptions common;
  std::string out = "runs";
  std::string run_dir;
  std::string resume;
};

/// Options that are the place or the manner of a run, not the run: kept out of run.json, and free beside
/// --resume.
const std::vector<std::string>& unrecorded_run_options();

void declare_run_options(CLI::App& command, OptionTable& table, RunOptions& options);

/// Parses the names into options.sampling and checks all that needs no model. Throws UsageError naming the
/// option.
void resolve(RunOptions& options);

/// "none", "columns" or "full", as the option's choices guarantee.
Capture parse_capture(const std::string& name);

/// "0:3,1:2" -> layer and head. Throws UsageError.
std::vector<LayerHead> parse_maps(const std::string& text);

}  // namespace sinkscope
