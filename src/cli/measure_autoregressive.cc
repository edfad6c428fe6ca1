#include "cli/measure_autoregressive.h"

#include <fmt/format.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <cmath>
#include <filesystem>
#include <memory>

#include "base/json.h"
#include "cli/json_lines.h"
#include "cli/memory.h"
#include "cli/result_files.h"
#include "eval/autoregressive_states.h"
#include "model/text_length.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

struct Sequences {
  std::vector<std::vector<std::int32_t>> ids;
  std::int64_t too_short = 0;  // texts that were left out
};

void check(const ModelMeasureOptions& options) {
  if (options.length < 2) throw UsageError("--length {}: at least 2 would be right", options.length);
  if (options.samples < 1) throw UsageError("--samples {}: at least 1 would be right", options.samples);
  constexpr std::int64_t most_tokens = 1'000'000'000;
  if (options.samples > most_tokens / options.length)
    throw UsageError("--samples {} of --length {} are more than {} tokens; fewer would be right",
                     options.samples, options.length, most_tokens);
  if (options.position < 0 || options.position >= options.length)
    throw UsageError("--position {} is none of the {} positions of --length, counted from 0",
                     options.position, options.length);
  if (!std::isfinite(options.epsilon) || options.epsilon < 0)
    throw UsageError("--epsilon {}: a number of at least 0 would be right", options.epsilon);
  if (options.seed < 0) throw UsageError("--seed {}: at least 0 would be right", options.seed);
  const bool natural = options.sequences == "natural";
  if (natural && options.text.empty())
    throw UsageError(
        "--ar needs texts: --text FILE.jsonl with `text` a line, or --sequences random or repeated");
  if (!natural && !options.text.empty())
    throw UsageError("--text is of --sequences natural; with {} no text is read", options.sequences);
}

// What a model that is none of the wanted kind is told.
void check_model(const ModelMeasureOptions& options, const ModelConfig& config) {
  if (!config.causal())
    throw UsageError(
        "{} is a diffusion model, and --ar measures autoregressive ones; `sinkscope run {}` and then "
        "`sinkscope "
        "measure RUN` would be right",
        options.model, options.model);
  const std::string text = fmt::format("--length {}: a sequence", options.length);
  check_positions(config, options.length, text);
  check_given(config, options.length, text);
}

// The first --samples texts of the file that are long enough, cut to the first --length tokens.
Sequences natural_sequences(const ModelMeasureOptions& options, const std::filesystem::path& folder,
                            const ModelConfig& config) {
  const Tokenizer tokenizer = Tokenizer::load(folder);
  const auto length = static_cast<std::size_t>(options.length);
  Sequences sequences;
  for_each_line(options.text, [&](const std::string& line, const std::string& where) {
    if (std::ssize(sequences.ids) == options.samples) return;
    std::vector<std::int32_t> ids = tokenizer.encode(text_of_line(line, where), true);
    if (ids.size() < length) {
      ++sequences.too_short;
      return;
    }
    ids.resize(length);
    for (const std::int32_t id : ids)
      if (id >= config.embedding_rows)
        throw Error("{}: token id {} is outside the model's {} ids", where, id, config.embedding_rows);
    sequences.ids.push_back(std::move(ids));
  });
  if (sequences.ids.empty())
    throw Error("{} holds no text of {} tokens; longer texts or a smaller --length would be right",
                options.text, options.length);
  return sequences;
}

Sequences sequences_of(const ModelMeasureOptions& options, const std::filesystem::path& folder,
                       const ModelConfig& config) {
  if (options.sequences == "natural") return natural_sequences(options, folder, config);
  return {random_sequences(static_cast<std::size_t>(options.samples),
                           static_cast<std::size_t>(options.length), config.embedding_rows,
                           options.sequences == "repeated", static_cast<std::uint64_t>(options.seed)),
          0};
}

void note_missing(const ModelMeasureOptions& options, const Sequences& sequences) {
  if (sequences.too_short > 0)
    note(options.common.quiet, fmt::format("{} texts have fewer than {} tokens and were left out",
                                           sequences.too_short, options.length));
  if (std::ssize(sequences.ids) < options.samples)
    note(options.common.quiet, fmt::format("{} holds {} texts that are long enough, --samples asks for {}",
                                           options.text, sequences.ids.size(), options.samples));
}

OrderedJson head_of(const ModelMeasureOptions& options, const ModelConfig& config, const Transformer& model,
                    const Sequences& sequences) {
  const bool natural = options.sequences == "natural";
  OrderedJson head{{"format", 1}, {"version", SINKSCOPE_VERSION}, {"command", "measure --ar"}};
  head["model"] = {{"name", options.model},       {"family", family_name(config.family)},
                   {"layers", config.layers},     {"heads", config.heads},
                   {"kv_heads", config.kv_heads}, {"dtype", dtype_option(model.dtype())}};
  head["sequences"] = options.sequences;
  head["text"] = natural ? OrderedJson(options.text) : OrderedJson(nullptr);
  head["seed"] = natural ? OrderedJson(nullptr) : OrderedJson(options.seed);
  head["samples"] = sequences.ids.size();
  head["left_out"] = sequences.too_short;
  head["length"] = options.length;
  head["epsilon"] = options.epsilon;
  head["position"] = options.position;
  head["aggregation"] = autoregressive_aggregation();
  return head;
}

}  // namespace

void declare_autoregressive_options(OptionTable& table, ModelMeasureOptions& options) {
  table
      .option("ar", options.model, "in place of RUN: an autoregressive model; directory, built-in name or id")
      ->type_name("MODEL");
  table.option("text", options.text,
               "--ar: JSON Lines with `text`, cut to --length tokens; - is standard input");
  table.choice("sequences", options.sequences, {"natural", "random", "repeated"},
               "--ar: the texts, tokens drawn uniformly, or one such token again and again");
  table.option("samples", options.samples, "--ar: sequences at most");
  table.option("length", options.length, "--ar: tokens of a sequence");
  table.option("position", options.position, "--ar: the key that maps, ratios and cosines are about, from 0");
  table.option("seed", options.seed, "--ar: of --sequences random and repeated");
  declare_model_options(table, options.common);
}

void refuse_autoregressive_options(const CLI::App& command) {
  for (const char* name : {"--text", "--sequences", "--samples", "--length", "--position", "--seed",
                           "--device", "--dtype", "--weights", "--threads"})
    if (command.count(name) > 0)
      throw UsageError("{} is of --ar MODEL; runs are measured as they were recorded", name);
}

OrderedJson measure_autoregressive(const ModelMeasureOptions& options) {
  check(options);
  const Placement placement = place(options.common);
  const std::filesystem::path folder = locate_model(options.model);
  const auto checkpoint = std::make_shared<const Checkpoint>(Checkpoint::open(folder));
  const ModelConfig& config = checkpoint->config();
  check_model(options, config);
  check_weights(placement, config);
  const ComputeDtype dtype = choose_dtype(options.common, config, placement.device);
  if (!dtype.note.empty()) note(options.common.quiet, dtype.note);
  if (placement.device.is_cpu())
    check_memory(*checkpoint, {.dtype = dtype.type,
                               .weights = placement.weights,
                               .threads = placement.threads,
                               .positions = options.length,
                               .capture = Capture::full});
  const Sequences sequences = sequences_of(options, folder, config);
  note_missing(options, sequences);
  const Transformer model = load_model(checkpoint, placement, dtype.type, options.common.quiet);
  Progress bar("measuring", options.common.quiet);
  const AutoregressiveSums sums = measure_sequences(
      model, autoregressive_measure(config, options.length, options.epsilon, options.position), sequences.ids,
      [&](std::size_t done) { show_samples(bar, done, sequences.ids.size()); });
  bar.finish();
  OrderedJson measured = head_of(options, config, model, sequences);
  measured.update(sums.result());
  return measured;
}

}  // namespace sinkscope
