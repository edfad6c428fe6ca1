#include "cli/eval_options.h"

#include <sinkscope/error.h>

#include <algorithm>

#include "eval/built_in_tasks.h"
#include "measure/statistics.h"

namespace sinkscope {
namespace {

void declare_tasks(OptionTable& table, EvalOptions& options) {
  table
      .option("tasks", options.tasks,
              fmt::format("comma-separated: {}; or .json files that describe tasks",
                          fmt::join(built_in_task_names(), ", ")))
      ->type_name("NAMES");
  table.option("data-dir", options.data_dir, "folder that holds the data sets");
  table.option("limit", options.limit, "only the first N problems of each task [all]")->type_name("N");
  table.option("num-fewshot", options.num_fewshot, "examples before each problem [the task's]")
      ->type_name("N");
  table.option("shots", options.shots, "JSON Lines of examples in the place of the tasks' own");
  table
      .option("responses", options.responses,
              "score these instead of a model's: JSON Lines with `response`, and `doc_id` where not in order")
      ->type_name("FILE");
  table.flag("raw", options.run.chat.raw, "no chat template");
  table.option("system", options.run.chat.system, "system message of the chat template");
  table.option("template", options.run.chat.name, "a built-in chat template instead of the model's own")
      ->type_name("NAME");
  table.option("template-date", options.run.chat.date, "the day that chat templates are told which ask it")
      ->type_name("YYYY-MM-DD");
  table.flag("confirm-run-unsafe-code", options.confirm_run_unsafe_code,
             "run the programs that the model writes, in a sandbox (needed by humaneval and mbpp)");
}

void declare_lengths(OptionTable& table, EvalOptions& options) {
  table.option("gen-len", options.gen_len, "tokens to generate [the task's]");
  table.option("steps", options.steps, "denoising steps [--gen-len]");
  table.option("block-len", options.block_len,
               "tokens of a block [32, or --gen-len where that is no multiple of 32]");
}

void declare_grid(OptionTable& table, EvalOptions& options) {
  table
      .option("sink-top-k", options.sink_top_k,
              "numbers of sinks masked per layer and head, comma-separated; 0 = none")
      ->type_name("LIST");
  table.option("sink-rank", options.sink_rank, "rankings, comma-separated, as of `run`")->type_name("LIST");
  table
      .option("sink-control", options.sink_control,
              "none (the sinks themselves) and controls of equal budget, comma-separated: none, random, "
              "bottom, matched")
      ->type_name("LIST");
}

void declare_likelihoods(OptionTable& table, EvalOptions& options) {
  table.option(
      "mc-num", options.likelihoods.likelihood.mc_num,
      "multiple choice, diffusion: Monte Carlo samples of a choice; a multiple of --likelihood-batch");
  table.option("likelihood-batch", options.likelihoods.likelihood.batch,
               "multiple choice: rows of a forward pass");
}

void declare_work(OptionTable& table, EvalOptions& options) {
  table.option("seed", options.run.seed, "sample i draws from its own generator, seeded with seed + i");
  table.option("batch", options.run.batch, "samples that run together; ids do not depend on it");
  table.choice("capture", options.run.sampling.capture, {"none", "columns", "full"},
               "what the runs record of the attention");
  table.choice("array-dtype", options.run.array_dtype, {"f16", "f32"}, "of the attention arrays");
  table
      .option("shard", options.run.shard,
              "only every N-th problem from the I-th on, from 0; default: what torchrun, mpirun or srun say "
              "[all]")
      ->type_name("I/N");
  table.option("resamples", options.resamples, "draws of a bootstrap interval");
  table.option("out", options.run.out, "folder in which the evaluation gets a folder of its own");
  table.option("run-dir", options.run.run_dir, "the evaluation's folder itself");
  table.option("resume", options.run.resume,
               "go on with this interrupted evaluation; all other options are its own");
  table.flag("json", options.json, "print eval.json instead of tables");
}

}  // namespace

void declare_eval_options(CLI::App& command, OptionTable& table, EvalOptions& options) {
  options.run.out = "evals";
  options.run.sampling.capture = "none";
  options.run.shows_texts = false;
  command.add_option("MODEL", options.run.model, "directory, built-in name or Hugging Face id");
  declare_tasks(table, options);
  declare_grid(table, options);
  declare_lengths(table, options);
  declare_sampling_rules(table, options.run.sampling);
  declare_sinks(table, options.run.sampling);
  declare_likelihoods(table, options);
  declare_work(table, options);
  declare_model_options(table, options.run.common);
}

const std::vector<std::string>& unrecorded_eval_options() {
  static const std::vector<std::string> names{"out", "run-dir", "resume", "threads", "quiet", "json"};
  return names;
}

void resolve(EvalOptions& options) {
  if (options.tasks.empty())
    throw UsageError("--tasks is missing; {} are built in", fmt::join(built_in_task_names(), ", "));
  if (options.limit && *options.limit < 1)
    throw UsageError("--limit is {}; it must be at least 1", *options.limit);
  constexpr std::int64_t most_shots = 1000;
  if (options.num_fewshot && (*options.num_fewshot < 0 || *options.num_fewshot > most_shots))
    throw UsageError("--num-fewshot is {}; it must be from 0 to {}", *options.num_fewshot, most_shots);
  validate_resamples(options.resamples);
  for (const auto& [name, value] :
       {std::pair{"gen-len", options.gen_len}, {"steps", options.steps}, {"block-len", options.block_len}})
    if (value && *value < 1) throw UsageError("--{} is {}; it must be at least 1", name, *value);
  resolve(options.run);
  for (const std::string& name : parse_names(options.sink_control, "--sink-control"))
    (void)parse_sink_control(name);
  for (const std::string& name : parse_names(options.sink_rank, "--sink-rank")) (void)parse_sink_rank(name);
  (void)cells_of(options, "columns");
}

std::vector<Cell> cells_of(const EvalOptions& options, const std::string& usual) {
  std::vector<std::string> ranks = parse_names(options.sink_rank, "--sink-rank");
  std::replace(ranks.begin(), ranks.end(), std::string("usual"), usual);
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (std::find(ranks.begin(), ranks.begin() + static_cast<std::ptrdiff_t>(i), ranks[i]) !=
        ranks.begin() + static_cast<std::ptrdiff_t>(i))
      throw UsageError("--sink-rank \"{}\" names {} twice: it is the model's usual one", options.sink_rank,
                       ranks[i]);
  return grid_cells(parse_numbers(options.sink_top_k, "--sink-top-k"), ranks,
                    parse_names(options.sink_control, "--sink-control"));
}

RunOptions run_of(const EvalOptions& options, const Cell& cell, std::int64_t task_gen_len,
                  const std::vector<std::string>& until, bool autoregressive) {
  RunOptions run = options.run;
  SamplingOptions& sampling = run.sampling;
  const SamplingOptions usual;
  for (const auto& [name, given] : {std::pair{"steps", options.steps}, {"block-len", options.block_len}})
    if (autoregressive && given)
      throw UsageError("--{} is for diffusion models; {} is not one of them", name, options.run.model);
  sampling.gen_len = options.gen_len.value_or(task_gen_len);
  const std::int64_t blocks = sampling.gen_len % usual.block_len == 0 ? usual.block_len : sampling.gen_len;
  sampling.steps = autoregressive ? usual.steps : options.steps.value_or(sampling.gen_len);
  sampling.block_len = autoregressive ? usual.block_len : options.block_len.value_or(blocks);
  if (autoregressive) sampling.stop = until;
  sampling.sinks.top_k = cell.top_k;
  if (cell.top_k > 0) sampling.sink_rank = cell.rank;
  sampling.sink_control = cell.control;
  resolve(sampling);
  return run;
}

}  // namespace sinkscope
