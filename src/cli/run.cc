// `sinkscope run`: generate over prompts, record attention columns, optionally mask sinks.
#include <fmt/format.h>
#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/run_options.h"
#include "cli/run_setup.h"
#include "cli/shard.h"

namespace sinkscope {
namespace {

std::vector<PreparedPrompt> prepare_prompts(std::vector<Prompt> prompts, const ChosenModel& model,
                                            const RunOptions& options) {
  std::optional<PromptWrapping> wrapping;  // ids need none
  std::vector<PreparedPrompt> prepared;
  for (Prompt& prompt : prompts) {
    if (!prompt.ids && !wrapping) wrapping.emplace(options.chat, model);
    std::vector<std::int32_t> ids = prompt.ids ? *prompt.ids : wrapping->encode(wrapping->text(prompt.text));
    prepared.push_back({std::move(prompt), std::move(ids)});
  }
  return prepared;
}

// Without what the model's sampler does not have.
RunName run_name(const SamplingOptions& options, Generation generation) {
  RunName name;
  name.gen_len = options.gen_len;
  if (generation != Generation::autoregressive) name.steps = options.steps;
  const bool in_blocks = generation == Generation::masked ||
                         (generation == Generation::shifted_masked && options.cache != "none");
  if (in_blocks) name.block_len = options.block_len;
  return name;
}

RunDirectory open_run(const RunInfo& info, const RunOptions& options, Generation generation,
                      const std::vector<PreparedPrompt>& prompts) {
  if (!options.resume.empty()) {
    RunDirectory run = RunDirectory::resume(options.resume);
    check_resumed(info, run, prompts);
    return run;
  }
  const std::filesystem::path folder =
      options.run_dir.empty()
          ? make_run_folder(options.out, run_name(options.sampling, generation), std::time(nullptr))
          : std::filesystem::path(shard_folder(options.run_dir, parse_shard(options.shard)));
  return RunDirectory::create(folder, info);
}

// `table` is the one that declared `options`.
void run_command(RunOptions& options, const OptionTable& table) {
  if (options.model.empty())
    throw UsageError("MODEL is missing: a directory, a built-in name or a Hugging Face id");
  resolve(options);
  share_work(options);
  std::vector<Prompt> prompts = read_prompts(options.prompts);
  const bool has_text =
      std::any_of(prompts.begin(), prompts.end(), [](const Prompt& prompt) { return !prompt.ids; });
  const ChosenModel chosen = choose_model(options, has_text);
  const Generation generation = chosen.config().generation;
  const Sampler sampler = choose_sampler(options.sampling, generation, chosen.ids);
  const std::vector<PreparedPrompt> prepared = prepare_prompts(std::move(prompts), chosen, options);
  check_against_model(prepared, chosen.config(), options);
  note_long_samples(prepared, chosen.config(), options);
  check_run_memory(prepared, options, chosen);
  RunDirectory run = open_run(describe_run(chosen, table, options), options, generation, prepared);
  const Transformer model =
      load_model(chosen.checkpoint, chosen.placement, chosen.dtype.type, options.common.quiet);
  note(options.common.quiet,
       fmt::format("{} samples into {}; {}, {} threads", prepared.size(), run.folder().string(),
                   model.implementation(), chosen.placement.threads));
  try {
    generate_samples(model, chosen.tokenizer, prepared, sampler, options, run);
    run.end();
  } catch (const std::exception& error) {
    throw Error("{} ({} of {} samples are finished and kept; go on with: sinkscope run --resume {})",
                message_of(error), run.finished().size(), prepared.size(), run.folder().string());
  }
  note(options.common.quiet,
       fmt::format("{} samples are in {}", run.finished().size(), run.folder().string()));
}

// The options of the interrupted run, with the threads and quietness of this one.
void resume_command(const CLI::App& command, const RunOptions& given) {
  refuse_beside_resume(command, {"resume", "threads", "quiet", "help"}, "run.json");
  const RunInfo info = read_run_info(given.resume);
  const std::string where = (std::filesystem::path(given.resume) / "run.json").string();
  if (info.command != "run")
    throw Error("{}: command is \"{}\"; only what `sinkscope run` began can be resumed", where, info.command);
  RunOptions options;
  CLI::App parser;
  OptionTable table(parser);
  declare_run_options(parser, table, options);
  parse_recorded(parser, table, info.options, where, options.model);
  options.resume = given.resume;
  options.common.threads = given.common.threads;
  options.common.quiet = given.common.quiet;
  run_command(options, table);
}

}  // namespace

void add_run_command(CLI::App& program) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command =
      program.add_subcommand("run", "Generate over prompts, record attention columns, optionally mask sinks");
  auto table = std::make_shared<OptionTable>(*command);
  declare_run_options(*command, *table, *options);
  command->footer(
      "Writes run.json, samples.jsonl and sample_NNNNN.npz; docs/run-directory.md describes them. Texts go "
      "to stdout.");
  command->callback([options, table, command] {
    if (options->resume.empty())
      run_command(*options, *table);
    else
      resume_command(*command, *options);
  });
}

}  // namespace sinkscope
