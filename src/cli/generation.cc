#include "cli/generation.h"

#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sinkscope/sample_writer.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "cli/progress.h"

namespace sinkscope {
namespace {

SampleLayout layout_of(const Transformer& model, std::size_t prompt_length, const RunOptions& options) {
  const ModelConfig& config = model.config();
  const LladaOptions& sampling = options.sampling;
  SampleLayout layout;
  layout.positions = static_cast<std::int64_t>(prompt_length) + sampling.gen_len;
  layout.layers = config.layers;
  layout.heads = config.heads;
  layout.kv_heads = config.kv_heads;
  layout.prompt_length = static_cast<std::int32_t>(prompt_length);
  layout.mask_id = sampling.mask_id;
  layout.columns = sampling.capture != Capture::none;
  layout.full = sampling.capture == Capture::full;
  layout.intervention = sampling.sinks.top_k > 0;
  layout.array_type = options.array_dtype == "f32" ? ArrayType::float32 : ArrayType::float16;
  for (const LayerHead& map : sampling.maps)
    layout.maps.emplace_back(static_cast<int>(map.layer), static_cast<int>(map.head));
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
                    .value_norm = values_of(step.value_norm)};
  for (const LayerHead& map : maps) arrays.maps.push_back(values_of(step.maps.at(map)));
  writer.append_step(arrays);
}

// Up to the first end token, special tokens left out. Without a tokenizer there is no text.
std::string text_of(std::span<const std::int32_t> output, const std::optional<Tokenizer>& tokenizer,
                    const ModelConfig& config) {
  if (!tokenizer) return "";
  const auto is_end = [&](std::int32_t id) {
    return std::find(config.eos_ids.begin(), config.eos_ids.end(), id) != config.eos_ids.end();
  };
  const auto end = std::find_if(output.begin(), output.end(), is_end);
  return tokenizer->decode(output.first(static_cast<std::size_t>(end - output.begin())),
                           /*skip_special=*/true);
}

SampleRecord record_of(std::int64_t index, const PreparedPrompt& prompt, const SampleResult& result,
                       double seconds, const std::optional<Tokenizer>& tokenizer, const ModelConfig& config) {
  SampleRecord record;
  record.index = index;
  record.id = prompt.prompt.id;
  record.prompt = prompt.prompt.text;
  record.prompt_ids = prompt.ids;
  record.output_ids.assign(result.ids.begin() + static_cast<std::ptrdiff_t>(prompt.ids.size()),
                           result.ids.end());
  record.text = text_of(record.output_ids, tokenizer, config);
  record.reference = prompt.prompt.reference;
  record.steps = result.steps;
  record.forward_passes = result.forward_passes;
  record.masks_left = result.masks_left;
  record.confidence_ties = result.confidence_ties;
  record.empty_rows = result.empty_rows;
  record.seconds = seconds;
  return record;
}

// Counts steps and tokens of the whole run for the progress display.
class RunProgress {
 public:
  RunProgress(std::size_t samples, const RunOptions& options)
      : bar_("generating", options.common.quiet), samples_(samples), options_(options) {}

  void step() {
    ++steps_;
    const auto all = static_cast<double>(samples_) * static_cast<double>(options_.sampling.steps);
    const double tokens = static_cast<double>(steps_) * static_cast<double>(options_.sampling.gen_len) /
                          static_cast<double>(options_.sampling.steps);
    bar_.show(static_cast<double>(steps_) / all, fmt::format("step {} of {:.0f}  {:.1f} tokens/s", steps_,
                                                             all, tokens / std::max(bar_.elapsed(), 1e-9)));
  }
  void pause() { bar_.finish(); }

 private:
  Progress bar_;
  std::size_t samples_;
  const RunOptions& options_;
  std::int64_t steps_ = 0;
};

void report(const SampleRecord& record, bool quiet) {
  const std::string text = fmt::format("[{}] {}\n", record.index, record.text);
  static bool lost = false;
  // Whoever read the texts may be gone; the run is in its files and goes on.
  if (!lost && (std::fputs(text.c_str(), stdout) < 0 || std::fflush(stdout) != 0)) {
    lost = true;
    note(false,
         "standard output cannot be written any more; the run goes on, its texts are in samples.jsonl");
  }
  if (record.masks_left > 0)
    note(quiet, fmt::format("sample {}: {} positions still hold the mask id, which the model predicted; "
                            "--forbid-mask prevents it",
                            record.index, record.masks_left));
  if (record.empty_rows > 0)
    note(quiet, fmt::format("sample {}: {} attention rows lost all their keys and gave zeros", record.index,
                            record.empty_rows));
}

void generate_batch(const Transformer& model, const std::optional<Tokenizer>& tokenizer,
                    const std::vector<PreparedPrompt>& prompts, std::span<const std::int64_t> indices,
                    const RunOptions& options, RunDirectory& run, RunProgress& progress) {
  const Progress clock("", /*quiet=*/true);
  std::vector<SampleRequest> requests;
  std::vector<SampleWriter> writers;
  for (const std::int64_t index : indices) {
    const PreparedPrompt& prompt = prompts[static_cast<std::size_t>(index)];
    requests.push_back(
        {prompt.ids, static_cast<std::uint64_t>(options.seed) + static_cast<std::uint64_t>(index)});
    writers.emplace_back(sample_path(run.folder(), index), layout_of(model, prompt.ids.size(), options));
  }
  const auto results =
      sample_llada(model, requests, options.sampling, [&](std::size_t sample, const StepRecord& step) {
        write_step(writers[sample], step, options.sampling.maps);
        progress.step();
      });
  progress.pause();
  for (std::size_t s = 0; s < results.size(); ++s) {
    writers[s].finish(results[s].ids);
    const auto record = record_of(indices[s], prompts[static_cast<std::size_t>(indices[s])], results[s],
                                  clock.elapsed(), tokenizer, model.config());
    run.add_sample(record);
    report(record, options.common.quiet);
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

void generate_samples(const Transformer& model, const std::optional<Tokenizer>& tokenizer,
                      const std::vector<PreparedPrompt>& prompts, const RunOptions& options,
                      RunDirectory& run) {
  std::vector<std::int64_t> pending;
  for (std::int64_t index = 0; index < static_cast<std::int64_t>(prompts.size()); ++index)
    if (!run.finished().contains(index)) pending.push_back(index);
  if (options.batch > 1) schedule_by_length(pending, prompts);
  RunProgress progress(pending.size(), options);
  for (std::size_t first = 0; first < pending.size(); first += static_cast<std::size_t>(options.batch)) {
    const std::size_t count = std::min(static_cast<std::size_t>(options.batch), pending.size() - first);
    generate_batch(model, tokenizer, prompts, std::span(pending).subspan(first, count), options, run,
                   progress);
  }
}

}  // namespace sinkscope
