#include "cli/run_options.h"

#include <sinkscope/error.h>

#include "cli/shard.h"

namespace sinkscope {
namespace {

void declare_prompts(OptionTable& table, RunOptions& options) {
  table.repeatable("prompt", options.prompts.prompt, "a prompt; repeatable");
  table.option("prompts", options.prompts.prompts,
               "JSON Lines with `prompt` or `question`/`answer`, or plain text lines");
  table.option("dataset", options.prompts.dataset, "gsm8k, humaneval, mbpp or math500, with --data-dir");
  table.option("data-dir", options.prompts.data_dir, "folder that holds the data sets");
  table.repeatable("prompt-ids", options.prompts.prompt_ids,
                   "token ids \"1,2,3\", taken as they are; repeatable");
  table.option("num-samples", options.prompts.num_samples, "only the first N prompts [all]")->type_name("N");
  table.flag("raw", options.chat.raw, "no chat template");
  table.option("system", options.chat.system, "system message of the chat template");
  table
      .option("template", options.chat.name,
              "a built-in chat template instead of the model's own: " +
                  fmt::format("{}", fmt::join(chat_template_names(), ", ")))
      ->type_name("NAME");
  table.option("template-date", options.chat.date, "the day that chat templates are told which ask it")
      ->type_name("YYYY-MM-DD");
}

void declare_run(OptionTable& table, RunOptions& options) {
  table.option("seed", options.seed, "sample i draws from its own generator, seeded with seed + i");
  table.option("batch", options.batch, "samples that run together; the results do not depend on it");
  table
      .option(
          "shard", options.shard,
          "only every N-th sample from the I-th on, from 0; default: what torchrun, mpirun or srun say [all]")
      ->type_name("I/N");
  table.flag("deviation", options.deviation,
             "with --threshold or --cache: also run without them, and print how far the results are apart");
}

void declare_recording(OptionTable& table, RunOptions& options) {
  table.choice("capture", options.sampling.capture, {"none", "columns", "full"},
               "what is recorded of the attention");
  table.option("maps", options.sampling.maps,
               "full maps of these heads, layers and heads from 0: L:H[,L:H...]");
  table.choice("array-dtype", options.array_dtype, {"f16", "f32"}, "of the attention arrays");
  table.option("out", options.out, "folder in which the run gets a folder of its own");
  table.option("run-dir", options.run_dir, "the run's folder itself");
  table.option("resume", options.resume, "go on with this interrupted run; all other options are its own");
}

}  // namespace

const std::vector<std::string>& unrecorded_run_options() {
  static const std::vector<std::string> names{"out", "run-dir", "resume", "threads", "quiet"};
  return names;
}

void declare_run_options(CLI::App& command, OptionTable& table, RunOptions& options) {
  command.add_option("MODEL", options.model, "directory, built-in name or Hugging Face id");
  declare_prompts(table, options);
  declare_sampling(table, options.sampling);
  declare_run(table, options);
  declare_sink_choice(table, options.sampling);
  declare_sinks(table, options.sampling);
  declare_recording(table, options);
  declare_model_options(table, options.common);
}

void resolve(RunOptions& options) {
  resolve(options.sampling);
  if (options.seed < 0) throw UsageError("--seed is {}; it must be at least 0", options.seed);
  if (options.batch < 1 || options.batch > 65536)
    throw UsageError("--batch is {}; it must be from 1 to 65536", options.batch);
  if (options.deviation && !options.sampling.threshold && options.sampling.cache == "none")
    throw UsageError(
        "--deviation compares a run with --threshold or --cache with the exact one; give one of them");
  validate(options.chat);
  (void)parse_shard(options.shard);
  if (!options.run_dir.empty() && !options.resume.empty())
    throw UsageError("--run-dir starts a run and --resume goes on with one; give one of them");
}

}  // namespace sinkscope
