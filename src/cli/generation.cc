#include "cli/generation.h"

#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/sample_writer.h>
#include <sinkscope/token_writer.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/deviation.h"
#include "cli/progress.h"
#include "cli/shard.h"

namespace sinkscope {
namespace {

ArrayType array_type(const RunOptions& options) {
  return options.array_dtype == "f32" ? ArrayType::float32 : ArrayType::float16;
}

SampleLayout layout_of(const Transformer& model, std::size_t prompt_length, const DenoisingOptions& sampling,
                       const RunOptions& options) {
  const ModelConfig& config = model.config();
  SampleLayout layout;
  layout.positions = static_cast<std::int64_t>(prompt_length) + sampling.gen_len;
  layout.layers = config.layers;
  layout.heads = config.heads;
  layout.kv_heads = config.kv_heads;
  layout.prompt_length = static_cast<std::int32_t>(prompt_length);
  layout.mask_id = sampling.mask_id;
  layout.columns = sampling.capture != Capture::none;
  layout.full = sampling.capture == Capture::full;
  layout.own_keys = sampling.sinks.top_k > 0 && sampling.sinks.rank == SinkRank::own;
  layout.intervention = sampling.sinks.top_k > 0 && !layout.own_keys;
  layout.effect = sampling.effect;
  layout.array_type = array_type(options);
  for (const LayerHead& map : sampling.maps)
    layout.maps.emplace_back(static_cast<int>(map.layer), static_cast<int>(map.head));
  return layout;
}

TokenLayout layout_of(const Transformer& model, std::size_t prompt_length,
                      const AutoregressiveOptions& sampling, const RunOptions& options) {
  TokenLayout layout;
  layout.longest = static_cast<std::int64_t>(prompt_length) + sampling.gen_len;
  layout.layers = model.config().layers;
  layout.heads = model.config().heads;
  layout.vocabulary = model.config().head_rows;
  layout.prompt_length = static_cast<std::int32_t>(prompt_length);
  layout.rows = sampling.capture != Capture::none;
  layout.logits = sampling.capture == Capture::full;
  layout.intervention = sampling.sinks.top_k > 0;
  layout.effect = sampling.effect;
  layout.array_type = array_type(options);
  return layout;
}

std::span<const float> values_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  return {tensor.data_ptr<float>(), static_cast<std::size_t>(tensor.numel())};
}

void write_step(SampleWriter& writer, const StepRecord& step, const std::vector<LayerHead>& maps) {
  SampleStep arrays{.states = step.state,
                    .proposed = step.proposed,
                    .confidence = step.confidence,
                    .column_sum = values_of(step.column_sum),
                    .masked_keys = step.removed,
                    .diagonal = values_of(step.diagonal),
                    .row_entropy = values_of(step.row_entropy),
                    .row_max = values_of(step.row_max),
                    .value_norm = values_of(step.value_norm),
                    .maps = {},
                    .queries_without_key = step.queries_without_key};
  if (step.effect != nullptr) {
    arrays.effect_kl = step.effect->kl;
    arrays.effect_agrees = step.effect->agrees;
    arrays.effect_confidence = step.effect->confidence;
    arrays.effect_probability = step.effect->probability;
    arrays.removed_mass = step.effect->removed_mass;
  }
  for (const LayerHead& map : maps) arrays.maps.push_back(values_of(step.maps.at(map)));
  writer.append_step(arrays);
}

void write_token(TokenWriter& writer, const TokenRecord& token) {
  writer.append_token({token.sequence, values_of(token.last_row), token.removed, token.logits,
                       static_cast<float>(token.effect.kl), static_cast<std::uint8_t>(token.effect.agrees),
                       static_cast<float>(token.effect.confidence),
                       static_cast<float>(token.effect.probability), token.removed_mass});
}

// Up to the first end token and the first text to stop at, special tokens left out. Without a tokenizer there
// is no text.
std::string text_of(std::span<const std::int32_t> output, const std::optional<Tokenizer>& tokenizer,
                    const ModelConfig& config, const std::vector<std::string>& stop) {
  if (!tokenizer) return "";
  const auto is_end = [&](std::int32_t id) {
    return std::find(config.eos_ids.begin(), config.eos_ids.end(), id) != config.eos_ids.end();
  };
  const auto end = std::find_if(output.begin(), output.end(), is_end);
  std::string text = tokenizer->decode(output.first(static_cast<std::size_t>(end - output.begin())),
                                       /*skip_special=*/true);
  for (const std::string& wanted : stop) text.resize(std::min(text.size(), text.find(wanted)));
  return text;
}

// Whether one of the texts stands at the end of what was generated. A token may end in the middle of a
// character, and the text may begin in the middle of a token: some more tokens than the text has bytes are
// decoded.
bool ends_with_stop(std::span<const std::int32_t> generated, const Tokenizer& tokenizer,
                    const std::vector<std::string>& stop) {
  constexpr std::size_t tokens_of_a_character = 4;
  std::size_t longest = 0;
  for (const std::string& text : stop) longest = std::max(longest, text.size());
  const std::size_t count = std::min(generated.size(), longest + tokens_of_a_character);
  const std::string tail = tokenizer.decode(generated.last(count), /*skip_special=*/true);
  return std::any_of(stop.begin(), stop.end(),
                     [&](const std::string& text) { return tail.find(text) != std::string::npos; });
}

SampleRecord record_of(std::int64_t index, const PreparedPrompt& prompt, const SampleResult& result,
                       double seconds, const std::optional<Tokenizer>& tokenizer, const ModelConfig& config,
                       const std::vector<std::string>& stop) {
  SampleRecord record;
  record.index = index;
  record.id = prompt.prompt.id;
  record.prompt = prompt.prompt.text;
  record.prompt_ids = prompt.ids;
  record.output_ids.assign(result.ids.begin() + static_cast<std::ptrdiff_t>(prompt.ids.size()),
                           result.ids.end());
  record.text = text_of(record.output_ids, tokenizer, config, stop);
  record.reference = prompt.prompt.reference;
  record.steps = result.steps;
  record.forward_passes = result.forward_passes;
  record.masks_left = result.masks_left;
  record.confidence_ties = result.confidence_ties;
  record.empty_rows = result.empty_rows;
  record.control_missing = result.control_missing;
  record.seconds = seconds;
  return record;
}

// Counts steps (of an autoregressive model: tokens) of the whole run for the progress display.
class RunProgress {
 public:
  RunProgress(std::size_t samples, std::int64_t steps, std::int64_t gen_len, bool quiet)
      : bar_("generating", quiet),
        all_(static_cast<double>(samples) * static_cast<double>(steps)),
        tokens_a_step_(static_cast<double>(gen_len) / static_cast<double>(steps)) {}

  void step() {
    ++steps_;
    const double tokens = static_cast<double>(steps_) * tokens_a_step_;
    bar_.show(std::min(1.0, static_cast<double>(steps_) / all_),
              fmt::format("step {} of {:.0f}  {:.1f} tokens/s", steps_, all_,
                          tokens / std::max(bar_.elapsed(), 1e-9)));
  }
  void pause() { bar_.finish(); }

 private:
  Progress bar_;
  double all_;
  double tokens_a_step_;
  std::int64_t steps_ = 0;
};

void report(const SampleRecord& record, bool shows_text, bool quiet) {
  const std::string text = fmt::format("[{}] {}\n", record.index, record.text);
  static bool lost = false;
  // Whoever read the texts may be gone; the run is in its files and goes on.
  if (shows_text && !lost && (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)) {
    lost = true;
    note(false,
         "standard output cannot be written any more; the run goes on, its texts are in samples.jsonl");
  }
  if (record.masks_left > 0)
    note(quiet,
         fmt::format("sample {}: {} positions still hold the mask id: the steps ended before they were "
                     "opened, or the model predicted it, which --forbid-mask prevents",
                     record.index, record.masks_left));
  if (record.empty_rows > 0)
    note(quiet, fmt::format("sample {}: {} attention rows lost all their keys and gave zeros", record.index,
                            record.empty_rows));
  if (record.control_missing > 0)
    note(quiet, fmt::format("sample {}: the control found no other key for {} of the picked ones",
                            record.index, record.control_missing));
}

// What the samples of a run share.
struct Run {
  const Transformer& model;
  const std::optional<Tokenizer>& tokenizer;
  const std::vector<PreparedPrompt>& prompts;
  const RunOptions& options;
  RunDirectory& directory;
  RunProgress progress;
  DeviationLog deviation;

  const PreparedPrompt& prompt(std::int64_t index) const { return prompts[static_cast<std::size_t>(index)]; }
};

std::vector<SampleRequest> requests_of(const Run& run, std::span<const std::int64_t> indices) {
  std::vector<SampleRequest> requests;
  for (const std::int64_t index : indices)
    requests.push_back({run.prompt(index).ids,
                        static_cast<std::uint64_t>(run.options.seed) + static_cast<std::uint64_t>(index)});
  return requests;
}

std::vector<SampleResult> sample(const Transformer& model, std::span<const SampleRequest> requests,
                                 const LladaOptions& options, const StepObserver& observer) {
  return sample_llada(model, requests, options, observer);
}
std::vector<SampleResult> sample(const Transformer& model, std::span<const SampleRequest> requests,
                                 const DreamOptions& options, const StepObserver& observer) {
  return sample_dream(model, requests, options, observer);
}

void end_sample(Run& run, std::int64_t index, const SampleResult& result, double seconds) {
  const SampleRecord record = record_of(index, run.prompt(index), result, seconds, run.tokenizer,
                                        run.model.config(), run.options.sampling.stop);
  run.directory.add_sample(record);
  report(record, run.options.shows_texts, run.options.common.quiet);
}

// The same batch without threshold and cache: what the quick ways are measured against.
template <typename Options>
void measure_deviation(Run& run, std::span<const std::int64_t> indices,
                       std::span<const SampleRequest> requests, Options options,
                       std::span<const SampleResult> results, double seconds) {
  options.threshold.reset();
  options.cache = CacheMode::none;
  options.capture = Capture::none;
  options.effect = false;
  options.maps.clear();
  const Progress clock("", /*quiet=*/true);
  const std::vector<SampleResult> exact = sample(run.model, requests, options, {});
  for (std::size_t s = 0; s < results.size(); ++s)
    run.deviation.add(indices[s], requests[s].prompt.size(), results[s], exact[s],
                      {seconds / static_cast<double>(results.size()),
                       clock.elapsed() / static_cast<double>(results.size())});
}

template <typename Options>
void generate_batch(Run& run, std::span<const std::int64_t> indices, const Options& options) {
  const Progress clock("", /*quiet=*/true);
  const std::vector<SampleRequest> requests = requests_of(run, indices);
  std::vector<SampleWriter> writers;
  for (const std::int64_t index : indices)
    writers.emplace_back(sample_path(run.directory.folder(), index),
                         layout_of(run.model, run.prompt(index).ids.size(), options, run.options));
  const auto results = sample(run.model, requests, options, [&](std::size_t sample, const StepRecord& step) {
    write_step(writers[sample], step, options.maps);
    run.progress.step();
  });
  run.progress.pause();
  const double seconds = clock.elapsed();
  // First, since a sample whose line is there is not looked at again.
  if (run.options.deviation && options.fast())
    measure_deviation(run, indices, requests, options, results, seconds);
  for (std::size_t s = 0; s < results.size(); ++s) {
    writers[s].finish(results[s].ids);
    end_sample(run, indices[s], results[s], seconds);
  }
}

void generate_batch(Run& run, std::span<const std::int64_t> indices, AutoregressiveOptions options) {
  const Progress clock("", /*quiet=*/true);
  const std::vector<SampleRequest> requests = requests_of(run, indices);
  const std::vector<std::string>& stop = run.options.sampling.stop;
  if (!stop.empty())
    options.stop = [&](std::size_t, std::span<const std::int32_t> generated) {
      return ends_with_stop(generated, *run.tokenizer, stop);
    };
  std::vector<TokenWriter> writers;
  for (const std::int64_t index : indices)
    writers.emplace_back(sample_path(run.directory.folder(), index),
                         layout_of(run.model, run.prompt(index).ids.size(), options, run.options));
  const auto results =
      sample_autoregressive(run.model, requests, options, [&](std::size_t sample, const TokenRecord& token) {
        write_token(writers[sample], token);
        run.progress.step();
      });
  run.progress.pause();
  for (std::size_t s = 0; s < results.size(); ++s) {
    writers[s].finish(results[s].ids);
    end_sample(run, indices[s], results[s], clock.elapsed());
  }
}

// Samples of like length run together: all rows of a batch then end at about the same time, and products of
// the same shape follow each other. The longest come first, so that what does not fit fails at once.
void schedule_by_length(std::vector<std::int64_t>& indices, const std::vector<PreparedPrompt>& prompts) {
  std::stable_sort(indices.begin(), indices.end(), [&](std::int64_t a, std::int64_t b) {
    return prompts[static_cast<std::size_t>(a)].ids.size() > prompts[static_cast<std::size_t>(b)].ids.size();
  });
}

}  // namespace

Sampler choose_sampler(const SamplingOptions& options, Generation generation, const SpecialIds& ids) {
  if (generation == Generation::autoregressive) return autoregressive_options(options, ids);
  if (generation == Generation::shifted_masked) return dream_options(options, ids);
  return llada_options(options, ids);
}

void generate_samples(const Transformer& model, const std::optional<Tokenizer>& tokenizer,
                      const std::vector<PreparedPrompt>& prompts, const Sampler& sampler,
                      const RunOptions& options, RunDirectory& directory) {
  const Shard shard = parse_shard(options.shard);
  std::vector<std::int64_t> pending;
  for (std::int64_t index = 0; index < static_cast<std::int64_t>(prompts.size()); ++index)
    if (shard.has(index) && !directory.finished().contains(index)) pending.push_back(index);
  if (options.batch > 1) schedule_by_length(pending, prompts);
  const bool autoregressive = std::holds_alternative<AutoregressiveOptions>(sampler);
  const std::int64_t steps = autoregressive ? options.sampling.gen_len : options.sampling.steps;
  Run run{model,
          tokenizer,
          prompts,
          options,
          directory,
          RunProgress(pending.size(), steps, options.sampling.gen_len, options.common.quiet),
          DeviationLog(directory.folder(), directory.finished())};
  for (std::size_t first = 0; first < pending.size(); first += static_cast<std::size_t>(options.batch)) {
    const std::size_t count = std::min(static_cast<std::size_t>(options.batch), pending.size() - first);
    const std::span<const std::int64_t> indices = std::span(pending).subspan(first, count);
    std::visit([&](const auto& chosen) { generate_batch(run, indices, chosen); }, sampler);
  }
  run.deviation.finish();
}

}  // namespace sinkscope
