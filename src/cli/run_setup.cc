#include "cli/run_setup.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>

#include "cli/memory.h"
#include "cli/shard.h"
#include "model/text_length.h"

namespace sinkscope {
namespace {

std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& directory, bool needed) {
  const bool has_files = std::filesystem::exists(directory / "tokenizer.json") ||
                         std::filesystem::exists(directory / "vocab.json");
  if (!needed && !has_files) return std::nullopt;
  return Tokenizer::load(directory);
}

std::int64_t longest_sample(const std::vector<PreparedPrompt>& prompts, const RunOptions& options) {
  std::size_t longest = 0;
  for (const PreparedPrompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  return static_cast<std::int64_t>(longest) + options.sampling.gen_len;
}

MemoryUse memory_use(const std::vector<PreparedPrompt>& prompts, const RunOptions& options,
                     const ChosenModel& model) {
  const SamplingOptions& sampling = options.sampling;
  MemoryUse use;
  use.dtype = model.dtype.type;
  use.weights = model.placement.weights;
  use.threads = model.placement.threads;
  use.sequences =
      std::min(options.batch, static_cast<std::int64_t>(prompts.size())) * (sampling.cfg > 0 ? 2 : 1);
  use.positions = longest_sample(prompts, options);
  use.capture = parse_capture(sampling.capture);
  use.removes_keys = sampling.sinks.top_k > 0;
  use.compares = sampling.effect;
  if (use.removes_keys && sampling.sinks.rank == SinkRank::own)
    use.listed_keys = sampling.sinks.top_k * (sampling.sinks.control == SinkControl::bottom ? 3 : 1);
  use.maps = static_cast<std::int64_t>(parse_maps(sampling.maps).size());
  use.keeps_logits = sampling.temperature > 0 || model.config().generation == Generation::shifted_masked;
  use.keeps_keys = sampling.cache != "none" || model.config().generation == Generation::autoregressive;
  return use;
}

}  // namespace

ChosenModel choose_model(const RunOptions& options, bool needs_tokenizer) {
  ChosenModel model;
  model.placement = place(options.common);
  model.checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(locate_model(options.model)));
  model.dtype = choose_dtype(options.common, model.config(), model.placement.device);
  if (!model.dtype.note.empty()) note(options.common.quiet, model.dtype.note);
  const std::filesystem::path& directory = model.checkpoint->directory();
  model.tokenizer = load_tokenizer(directory, needs_tokenizer);
  model.ids = special_ids(*model.checkpoint, model.tokenizer);
  check_applicable(options.sampling, model.config());
  check_weights(model.placement, model.config());
  if (!options.sampling.stop.empty() && !model.tokenizer)
    throw UsageError("--stop is text, and {} has no tokenizer", directory.string());
  return model;
}

PromptWrapping::PromptWrapping(const TemplateOptions& options, const ChosenModel& model)
    : options_(options), tokenizer_(*model.tokenizer) {
  if (!options.raw)
    chat_ = choose_chat_template(options, model.checkpoint->directory(), family_name(model.config().family));
}

std::string PromptWrapping::text(const std::string& prompt) const {
  return chat_ ? templated(*chat_, options_, prompt) : prompt;
}

std::vector<std::int32_t> PromptWrapping::encode(const std::string& text) const {
  return tokenizer_.encode(text, /*add_special=*/!chat_);
}

std::string absolute_if_there(const std::string& path) {
  return !path.empty() && std::filesystem::exists(path)
             ? std::filesystem::absolute(path).lexically_normal().string()
             : path;
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
  check_row_counts(options.sampling.sinks, longest_sample(prompts, options));
}

void note_long_samples(const std::vector<PreparedPrompt>& prompts, const ModelConfig& config,
                       const RunOptions& options) {
  const std::int64_t positions = longest_sample(prompts, options);
  if (positions > config.max_positions)
    note(options.common.quiet, fmt::format("the longest sample has {} positions, the model was made for {}",
                                           positions, config.max_positions));
}

void check_run_memory(const std::vector<PreparedPrompt>& prompts, const RunOptions& options,
                      const ChosenModel& model) {
  if (model.placement.device.is_cpu()) check_memory(*model.checkpoint, memory_use(prompts, options, model));
}

RunSink describe_sinks(const InterventionOptions& sinks) {
  RunSink sink;
  sink.rule = name_of(sinks.rule);
  sink.scale = name_of(sinks.scale);
  sink.epsilon = sinks.epsilon;
  sink.top_k = sinks.top_k;
  sink.from = name_of(sinks.from);
  sink.exclude_self = sinks.exclude_self;
  sink.mask_sink_ratio = sinks.mask_sink_ratio;
  sink.control = name_of(sinks.control);
  sink.action = name_of(sinks.change.action);
  return sink;
}

RunInfo describe_run(const ChosenModel& model, const OptionTable& table, const RunOptions& options) {
  const ModelConfig& config = model.config();
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
                model.ids.mask,
                "",
                ""};
  const std::vector<std::filesystem::path> config_file{model.checkpoint->config_file()};
  info.model.config_sha256 = sha256_of_files(config_file);
  info.model.weights_sha256 = sha256_of_files(model.checkpoint->weight_files());
  info.sink = describe_sinks(options.sampling.sinks);
  info.machine = describe_machine(model.placement.threads, model.placement.device.str());
  return info;
}

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

void share_work(RunOptions& options) {
  std::string source = "--shard";
  if (options.shard.empty() && options.resume.empty()) options.shard = shard_of_launcher(source);
  const Shard shard = parse_shard(options.shard);
  if (shard.is_all()) {
    options.shard.clear();
    return;
  }
  if (options.run_dir.empty() && options.resume.empty())
    throw UsageError("{} make this process {} of {}: give --run-dir, so that the shards lie side by side",
                     source, shard.index, shard.count);
  note(options.common.quiet, fmt::format("shard {} of {} ({})", shard.index, shard.count, source));
}

void refuse_beside(const CLI::App& command, const std::vector<std::string>& free, const std::string& what) {
  for (const CLI::Option* option : command.get_options()) {
    const std::string name = option->get_single_name();
    if (option->count() > 0 && std::find(free.begin(), free.end(), name) == free.end())
      throw UsageError("{} cannot be given with {}", name == "MODEL" ? name : "--" + name, what);
  }
}

void refuse_beside_resume(const CLI::App& command, const std::vector<std::string>& free, const char* file) {
  refuse_beside(command, free, fmt::format("--resume: the options in its {} count", file));
}

void parse_recorded(CLI::App& parser, const OptionTable& table, nlohmann::ordered_json recorded,
                    const std::string& where, std::string& model) {
  if (!recorded.contains("model") || !recorded["model"].is_string())
    throw Error("{}: options.model must be a string", where);
  model = recorded["model"].get<std::string>();
  recorded.erase("model");
  std::vector<std::string> arguments = table.to_arguments(recorded, where);
  std::reverse(arguments.begin(), arguments.end());
  try {
    parser.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw Error("{}: its options cannot be read ({})", where, error.what());
  }
}

}  // namespace sinkscope
