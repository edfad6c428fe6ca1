// The options of all samplers as on the command line, and the part of them that a model's own sampler takes.
#pragma once

#include <sinkscope/autoregressive_sampler.h>
#include <sinkscope/dream_sampler.h>
#include <sinkscope/llada_sampler.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/option_table.h"
#include "cli/special_ids.h"

namespace sinkscope {

/// Names as on the command line.
struct SamplingOptions {
  std::int64_t gen_len = 128;
  std::int64_t steps = 128;
  std::int64_t block_len = 32;
  double temperature = 0;
  double cfg = 0;
  std::string remasking = "low_confidence";
  std::string alg = "origin";
  double alg_temp = 0;
  double top_p = 1;
  std::int64_t top_k = 0;
  double eps = 1e-3;
  std::string confidence = "f64";
  std::string confidence_from = "tempered";
  bool logits_eos_inf = false;
  bool confidence_eos_eot_inf = false;
  bool forbid_mask = false;
  std::optional<double> threshold;
  std::string cache = "none";
  bool ignore_eos = false;
  std::vector<std::string> stop;

  InterventionOptions sinks;  // numbers and flags; the names below are parsed into it
  std::string sink_rule = "paper";
  std::string sink_scale = "sum";
  std::string sink_from = "raw";
  std::string sink_rank = "usual";
  std::string sink_control = "none";
  std::string sink_action = "remove";
  std::string sink_positions = "prompt,decoded,masked";
  std::string sink_layers, sink_heads, sink_steps;
  bool effect = false;

  std::string capture = "columns";
  std::string maps;
};

void declare_sampling(OptionTable& table, SamplingOptions& options);
/// Those that say how tokens are chosen, not how many.
void declare_sampling_rules(OptionTable& table, SamplingOptions& options);
/// --sink-top-k, --sink-rank and --sink-control, one of each; `eval` takes lists of them.
void declare_sink_choice(OptionTable& table, SamplingOptions& options);
void declare_sinks(OptionTable& table, SamplingOptions& options);

/// Parses what are names on the command line. Throws UsageError naming the option.
void resolve(SamplingOptions& options);

/// Throws UsageError naming the first option that was given another value than its default and that this kind
/// of model does not have, and which models have it.
void check_applicable(const SamplingOptions& options, const ModelConfig& config);

// What each sampler takes; validated.
LladaOptions llada_options(const SamplingOptions& options, const SpecialIds& ids);
DreamOptions dream_options(const SamplingOptions& options, const SpecialIds& ids);
AutoregressiveOptions autoregressive_options(const SamplingOptions& options, const SpecialIds& ids);

/// "none", "columns" or "full", as the option's choices guarantee.
Capture parse_capture(const std::string& name);

/// "0:3,1:2" -> layer and head. Throws UsageError.
std::vector<LayerHead> parse_maps(const std::string& text);

}  // namespace sinkscope
