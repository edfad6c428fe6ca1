// `sinkscope run`: generate over prompts, record attention columns, optionally mask sinks.
#include <fmt/format.h>
#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <ctime>
#include <memory>

#include "cli/commands.h"
#include "cli/generation.h"
#include "cli/memory.h"
#include "cli/run_options.h"
#include "model/text_length.h"

namespace sinkscope {
namespace {

// What names one place now must name it from everywhere later on, when the run is resumed.
std::string absolute_if_there(const std::string& path) {
  return !path.empty() && std::filesystem::exists(path)
             ? std::filesystem::absolute(path).lexically_normal().string()
             : path;
}

// Prompts that are text need a tokenizer; ids do without.
std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& directory,
                                        const std::vector<Prompt>& prompts) {
  const bool has_files = std::filesystem::exists(directory / "tokenizer.json") ||
                         std::filesystem::exists(directory / "vocab.json");
  const bool needed =
      std::any_of(prompts.begin(), prompts.end(), [](const Prompt& prompt) { return !prompt.ids; });
  if (!needed && !has_files) return std::nullopt;
  return Tokenizer::load(directory);
}

std::vector<PreparedPrompt> prepare_prompts(std::vector<Prompt> prompts, const Checkpoint& checkpoint,
                                            const std::optional<Tokenizer>& tokenizer,
                                            const RunOptions& options) {
  std::optional<ChatTemplate> chat;
  std::vector<PreparedPrompt> prepared;
  for (Prompt& prompt : prompts) {
    std::vector<std::int32_t> ids;
    if (prompt.ids) {
      ids = *prompt.ids;
    } else if (options.chat.raw) {
      ids = tokenizer->encode(prompt.text, /*add_special=*/true);
    } else {
      if (!chat)
        chat = choose_chat_template(options.chat, checkpoint.directory(),
                                    family_name(checkpoint.config().family));
      // The template has written the begin token already, where the format has one.
      ids = tokenizer->encode(templated(*chat, options.chat, prompt.text));
    }
    prepared.push_back({std::move(prompt), std::move(ids)});
  }
  return prepared;
}

std::int64_t longest_sample(const std::vector<PreparedPrompt>& prompts, const RunOptions& options) {
  std::size_t longest = 0;
  for (const PreparedPrompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  return static_cast<std::int64_t>(longest) + options.sampling.gen_len;
}

void check_against_model(const std::vector<PreparedPrompt>& prompts, const ModelConfig& config,
                         const RunOptions& options) {
  for (const PreparedPrompt& prompt : prompts)
    if (prompt.ids.empty() && config.generation == Generation::autoregressive)
      throw UsageError(
          "prompt {} is empty: an autoregressive model needs at least one token, its begin token say",
          prompt.prompt.id);
  for (const PreparedPrompt& prompt : prompts)
    for (const std::int32_t id : prompt.ids)
      if (id >= config.embedding_rows)
        throw UsageError("prompt {}: token id {} is outside the model's embedding of {} rows",
                         prompt.prompt.id, id, config.embedding_rows);
  for (const PreparedPrompt& prompt : prompts)
    check_text(config, static_cast<std::int64_t>(prompt.ids.size()), options.sampling.gen_len,
               fmt::format("prompt {}", prompt.prompt.id),
               fmt::format("prompt {} with its answer", prompt.prompt.id));
  for (const LayerHead& map : parse_maps(options.sampling.maps))
    if (map.layer >= config.layers || map.head >= config.heads)
      throw UsageError("--maps {}:{}: the model has {} layers of {} query heads, numbered from 0", map.layer,
                       map.head, config.layers, config.heads);
  const std::int64_t positions = longest_sample(prompts, options);
  check_row_counts(options.sampling.sinks, positions);
  if (positions > config.max_positions)
    note(options.common.quiet, fmt::format("the longest sample has {} positions, the model was made for {}",
                                           positions, config.max_positions));
}

MemoryUse memory_use(const std::vector<PreparedPrompt>& prompts, const RunOptions& options,
                     const Placement& placement, at::ScalarType dtype, Generation generation) {
  const SamplingOptions& sampling = options.sampling;
  MemoryUse use;
  use.dtype = dtype;
  use.weights = placement.weights;
  use.threads = placement.threads;
  use.sequences =
      std::min(options.batch, static_cast<std::int64_t>(prompts.size())) * (sampling.cfg > 0 ? 2 : 1);
  use.positions = longest_sample(prompts, options);
  use.capture = parse_capture(sampling.capture);
  use.removes_keys = sampling.sinks.top_k > 0;
  use.compares = sampling.effect;
  if (use.removes_keys && sampling.sinks.rank == SinkRank::own)
    use.listed_keys = sampling.sinks.top_k * (sampling.sinks.control == SinkControl::bottom ? 3 : 1);
  use.maps = static_cast<std::int64_t>(parse_maps(sampling.maps).size());
  use.keeps_logits = sampling.temperature > 0 || generation == Generation::shifted_masked;
  use.keeps_keys = sampling.cache != "none" || generation == Generation::autoregressive;
  return use;
}

RunInfo describe_run(const Checkpoint& checkpoint, const OptionTable& table, const RunOptions& options,
                     const SpecialIds& ids, const Placement& placement) {
  const ModelConfig& config = checkpoint.config();
  RunInfo info;
  info.version = SINKSCOPE_VERSION;
  info.command = "run";
  info.options["model"] = absolute_if_there(options.model);
  info.options.update(table.to_json(unrecorded_run_options()));
  info.options["prompts"] = absolute_if_there(options.prompts.prompts);
  info.options["data_dir"] = absolute_if_there(options.prompts.data_dir);
  info.model = {options.model,
                std::string(family_name(config.family)),
                config.layers,
                config.heads,
                config.kv_heads,
                ids.mask,
                "",
                ""};
  const std::vector<std::filesystem::path> config_file{checkpoint.config_file()};
  info.model.config_sha256 = sha256_of_files(config_file);
  info.model.weights_sha256 = sha256_of_files(checkpoint.weight_files());
  const InterventionOptions& sinks = options.sampling.sinks;
  info.sink.rule = name_of(sinks.rule);
  info.sink.scale = name_of(sinks.scale);
  info.sink.epsilon = sinks.epsilon;
  info.sink.top_k = sinks.top_k;
  info.sink.from = name_of(sinks.from);
  info.sink.exclude_self = sinks.exclude_self;
  info.sink.mask_sink_ratio = sinks.mask_sink_ratio;
  info.sink.control = name_of(sinks.control);
  info.sink.action = name_of(sinks.change.action);
  info.machine = describe_machine(placement.threads, placement.device.str());
  return info;
}

// A run goes on only with the model and the prompts it began with.
void check_resumed(const RunInfo& now, const RunDirectory& run, const std::vector<PreparedPrompt>& prompts) {
  const std::string folder = run.folder().string();
  if (now.model.config_sha256 != run.info().model.config_sha256)
    throw Error("{}: the model's config.json is not the one the run began with", folder);
  if (now.model.weights_sha256 != run.info().model.weights_sha256)
    throw Error("{}: the model's weights are not those the run began with", folder);
  for (const SampleRecord& record : read_samples(run.folder())) {
    const bool same = record.index >= 0 && record.index < static_cast<std::int64_t>(prompts.size()) &&
                      prompts[static_cast<std::size_t>(record.index)].ids == record.prompt_ids;
    if (!same)
      throw Error(
          "{}: the prompt of sample {} is not the one the run began with; the source of the prompts has "
          "changed",
          folder, record.index);
  }
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
          : std::filesystem::path(options.run_dir);
  return RunDirectory::create(folder, info);
}

void run_command(RunOptions options, const OptionTable& table) {
  if (options.model.empty())
    throw UsageError("MODEL is missing: a directory, a built-in name or a Hugging Face id");
  resolve(options);
  const Placement placement = place(options.common);
  std::vector<Prompt> prompts = read_prompts(options.prompts);
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(locate_model(options.model)));
  const ModelConfig& config = checkpoint->config();
  const ComputeDtype dtype = choose_dtype(options.common, config, placement.device);
  if (!dtype.note.empty()) note(options.common.quiet, dtype.note);
  const std::optional<Tokenizer> tokenizer = load_tokenizer(checkpoint->directory(), prompts);
  const SpecialIds ids = special_ids(*checkpoint, tokenizer);
  check_applicable(options.sampling, config);
  check_weights(placement, config);
  if (!options.sampling.stop.empty() && !tokenizer)
    throw UsageError("--stop is text, and {} has no tokenizer", checkpoint->directory().string());
  const Sampler sampler = choose_sampler(options.sampling, config.generation, ids);
  const std::vector<PreparedPrompt> prepared =
      prepare_prompts(std::move(prompts), *checkpoint, tokenizer, options);
  check_against_model(prepared, config, options);
  if (placement.device.is_cpu())
    check_memory(*checkpoint, memory_use(prepared, options, placement, dtype.type, config.generation));
  RunDirectory run = open_run(describe_run(*checkpoint, table, options, ids, placement), options,
                              config.generation, prepared);
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  note(options.common.quiet, fmt::format("{} samples into {}; {}, {} threads", prepared.size(),
                                         run.folder().string(), model.implementation(), placement.threads));
  try {
    generate_samples(model, tokenizer, prepared, sampler, options, run);
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
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    const bool free = name == "resume" || name == "threads" || name == "quiet" || name == "help";
    if (option->count() > 0 && !free)
      throw UsageError("{} cannot be given with --resume: the run's own options in its run.json count",
                       name == "MODEL" ? name : "--" + name);
  }
  const RunInfo info = read_run_info(given.resume);
  const std::string where = (std::filesystem::path(given.resume) / "run.json").string();
  if (info.command != "run")
    throw Error("{}: command is \"{}\"; only what `sinkscope run` began can be resumed", where, info.command);
  RunOptions options;
  CLI::App parser;
  OptionTable table(parser);
  declare_run_options(parser, table, options);
  nlohmann::ordered_json recorded = info.options;
  if (!recorded.contains("model") || !recorded["model"].is_string())
    throw Error("{}: options.model must be a string", where);
  options.model = recorded["model"].get<std::string>();
  recorded.erase("model");
  std::vector<std::string> arguments = table.to_arguments(recorded, where);
  std::reverse(arguments.begin(), arguments.end());
  try {
    parser.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw Error("{}: its options cannot be read ({})", where, error.what());
  }
  options.resume = given.resume;
  options.common.threads = given.common.threads;
  options.common.quiet = given.common.quiet;
  run_command(std::move(options), table);
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
