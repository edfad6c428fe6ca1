#include <ATen/TensorOperators.h>
#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>
#include <sinkscope/memory.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/vocabulary_head.h"
#include "sampling/prediction.h"
#include "sampling/random_stream.h"
#include "sampling/schedule.h"

namespace sinkscope {
namespace {

// Column sums and diagonal of one row's previous step, [L, H, S]: what the intervention ranks by.
struct PreviousStep {
  at::Tensor columns;
  at::Tensor diagonal;
};

// One row of the model's batch. With guidance a sample has two: they are ranked and masked separately.
struct Row {
  std::size_t sample = 0;
  bool unconditional = false;
  PreviousStep previous;
  std::vector<std::uint8_t> removed;  // [L, H, S] in this step
};

struct Sample {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> given;  // 1 where the prompt holds a token: what the unconditional row hides
  std::int64_t prompt_length = 0;
  RandomStream random;
  std::vector<std::int64_t> schedule;  // of the current block
  std::vector<std::int32_t> proposed;
  std::vector<double> confidence;
  SampleResult result;

  std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
};

// Positions of a sample that hold the mask id: their predictions are wanted.
std::vector<std::int64_t> masked_positions(const Sample& sample, std::int32_t mask_id) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = 0; i < sample.length(); ++i)
    if (sample.ids[static_cast<std::size_t>(i)] == mask_id) positions.push_back(i);
  return positions;
}

class Sampler {
 public:
  Sampler(const Transformer& model, std::span<const SampleRequest> requests, const LladaOptions& options,
          const StepObserver& observer);
  std::vector<SampleResult> run();

 private:
  void start_block(std::int64_t block);
  void step(std::int64_t step, std::int64_t block_end, std::int64_t step_in_block);
  TokenBatch make_batch() const;
  std::vector<std::uint8_t> choose_removed(const TokenBatch& batch);
  ForwardResult forward(const TokenBatch& batch, const std::vector<std::uint8_t>& removed);
  void predict(const ForwardResult& forwarded, std::int64_t step);
  void predict_quietly(const VocabularyRows& rows, std::int64_t step);
  void predict_noisily(const at::Tensor& hidden, std::int64_t step);
  void predict_sample(Sample& sample, const at::Tensor& hidden, const at::Tensor& unconditional,
                      std::int64_t step);
  void draw_confidences();
  std::vector<std::uint8_t> candidates(const Sample& sample, std::int64_t block_end) const;
  void remember(const TokenBatch& batch, const Observation& seen);
  void report(const TokenBatch& batch, const Observation& seen, std::int64_t step, std::int64_t block_end);

  bool intervenes() const { return options_.sinks.top_k > 0; }
  bool is_masked(const Sample& sample, std::int64_t i) const {
    return sample.ids[static_cast<std::size_t>(i)] == options_.mask_id;
  }

  const Transformer& model_;
  const LladaOptions& options_;
  const StepObserver& observer_;
  std::vector<Sample> samples_;
  std::vector<Row> rows_;  // all conditional rows, then all unconditional ones
  ForwardWorkspace workspace_;
};

Sampler::Sampler(const Transformer& model, std::span<const SampleRequest> requests,
                 const LladaOptions& options, const StepObserver& observer)
    : model_(model), options_(options), observer_(observer) {
  for (const SampleRequest& request : requests) {
    Sample sample{request.prompt,
                  {},
                  static_cast<std::int64_t>(request.prompt.size()),
                  RandomStream(request.seed),
                  {},
                  {},
                  {},
                  {}};
    sample.ids.resize(request.prompt.size() + static_cast<std::size_t>(options.gen_len), options.mask_id);
    for (const std::int32_t id : sample.ids) sample.given.push_back(id != options.mask_id ? 1 : 0);
    samples_.push_back(std::move(sample));
  }
  for (const bool unconditional : {false, true})
    for (std::size_t s = 0; s < samples_.size(); ++s)
      if (!unconditional || options.cfg > 0) rows_.push_back({s, unconditional, {}, {}});
}

std::vector<SampleResult> Sampler::run() {
  const std::int64_t blocks = options_.gen_len / options_.block_len;
  const std::int64_t steps_per_block = options_.steps / blocks;
  for (std::int64_t block = 0; block < blocks; ++block) {
    start_block(block);
    for (std::int64_t i = 0; i < steps_per_block; ++i)
      step(block * steps_per_block + i, (block + 1) * options_.block_len, i);
  }
  std::vector<SampleResult> results;
  for (Sample& sample : samples_) {
    sample.result.masks_left = std::count(sample.ids.begin(), sample.ids.end(), options_.mask_id);
    sample.result.ids = std::move(sample.ids);
    results.push_back(std::move(sample.result));
  }
  return results;
}

void Sampler::start_block(std::int64_t block) {
  const std::int64_t steps_per_block = options_.steps / (options_.gen_len / options_.block_len);
  for (Sample& sample : samples_) {
    const auto begin = sample.ids.begin() + sample.prompt_length + block * options_.block_len;
    sample.schedule =
        transfer_schedule(std::count(begin, begin + options_.block_len, options_.mask_id), steps_per_block);
  }
}

// block_end counts from the end of the prompt.
void Sampler::step(std::int64_t step, std::int64_t block_end, std::int64_t step_in_block) {
  const TokenBatch batch = make_batch();
  const std::vector<std::uint8_t> removed = choose_removed(batch);
  const ForwardResult forwarded = forward(batch, removed);
  predict(forwarded, step);
  if (options_.remasking == Remasking::random) draw_confidences();
  if (intervenes()) remember(batch, forwarded.observation);
  if (observer_) report(batch, forwarded.observation, step, block_end);
  for (std::size_t r = 0; r < rows_.size(); ++r)
    samples_[rows_[r].sample].result.empty_rows += forwarded.observation.empty_rows[r];
  for (Sample& sample : samples_) {
    const Opened opened = open_most_confident(sample.confidence, candidates(sample, block_end),
                                              sample.schedule[static_cast<std::size_t>(step_in_block)]);
    for (const std::int64_t i : opened.positions)
      sample.ids[static_cast<std::size_t>(i)] = sample.proposed[static_cast<std::size_t>(i)];
    sample.result.confidence_ties += opened.ties;
    ++sample.result.steps;
    ++sample.result.forward_passes;
  }
}

TokenBatch Sampler::make_batch() const {
  TokenBatch batch;
  for (const Row& row : rows_) {
    const Sample& sample = samples_[row.sample];
    for (std::int64_t i = 0; i < sample.length(); ++i) {
      const bool hidden = row.unconditional && sample.given[static_cast<std::size_t>(i)] != 0;
      const std::int32_t id = hidden ? options_.mask_id : sample.ids[static_cast<std::size_t>(i)];
      const QueryClass query_class = id == options_.mask_id     ? QueryClass::masked
                                     : i < sample.prompt_length ? QueryClass::prompt
                                                                : QueryClass::decoded;
      batch.ids.push_back(id);
      batch.query_class.push_back(static_cast<std::uint8_t>(query_class));
    }
    batch.offsets.push_back(batch.tokens());
  }
  return batch;
}

// The keys each row loses in this step, joined to [L, H, N]; empty in the first step and without an
// intervention.
std::vector<std::uint8_t> Sampler::choose_removed(const TokenBatch& batch) {
  if (!intervenes()) return {};
  const ModelConfig& config = model_.config();
  const std::int64_t maps = config.layers * config.heads;
  std::vector<std::uint8_t> joined(static_cast<std::size_t>(maps * batch.tokens()), 0);
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    Row& row = rows_[r];
    const std::int64_t length = samples_[row.sample].length();
    const auto cells = static_cast<std::size_t>(maps * length);
    if (!row.previous.columns.defined()) {
      row.removed.assign(cells, 0);
      continue;
    }
    const std::span<const float> columns(row.previous.columns.data_ptr<float>(), cells);
    const std::span<const float> diagonal(row.previous.diagonal.data_ptr<float>(), cells);
    row.removed = choose_removed_keys(columns, diagonal, static_cast<std::size_t>(length), options_.sinks);
    for (std::int64_t m = 0; m < maps; ++m)
      std::copy_n(row.removed.begin() + m * length, length,
                  joined.begin() + m * batch.tokens() + batch.offsets[r]);
  }
  const bool any =
      std::any_of(joined.begin(), joined.end(), [](std::uint8_t removed) { return removed != 0; });
  return any ? joined : std::vector<std::uint8_t>{};
}

ForwardResult Sampler::forward(const TokenBatch& batch, const std::vector<std::uint8_t>& removed) {
  std::vector<std::int64_t> wanted;
  for (std::size_t r = 0; r < rows_.size(); ++r)
    for (const std::int64_t i : masked_positions(samples_[rows_[r].sample], options_.mask_id))
      wanted.push_back(batch.offsets[r] + i);
  const Capture capture = intervenes() ? std::max(options_.capture, Capture::columns) : options_.capture;
  return model_.forward({.tokens = batch,
                         .wanted = std::move(wanted),
                         .head = options_.temperature > 0 ? Head::none : Head::vocabulary,
                         .vocabulary = vocabulary_options(options_),
                         .capture = observer_ || intervenes() ? capture : Capture::none,
                         .maps = observer_ ? options_.maps : std::vector<LayerHead>{},
                         .removed = removed.empty() ? nullptr : removed.data()},
                        workspace_);
}

// Fills proposed and confidence of every sample.
void Sampler::predict(const ForwardResult& forwarded, std::int64_t step) {
  for (Sample& sample : samples_) {
    sample.proposed.assign(sample.ids.size(), -1);
    sample.confidence.assign(sample.ids.size(), std::numeric_limits<double>::quiet_NaN());
  }
  if (options_.temperature > 0)
    predict_noisily(forwarded.hidden, step);
  else
    predict_quietly(forwarded.vocabulary, step);
}

void set_prediction(Sample& sample, std::int64_t position, const Prediction& prediction) {
  sample.proposed[static_cast<std::size_t>(position)] = prediction.token;
  sample.confidence[static_cast<std::size_t>(position)] = prediction.confidence;
}

// Calls predict() and says where it failed.
template <typename Predict>
Prediction predict_at(std::int64_t position, std::int64_t step, Predict predict) {
  try {
    return predict();
  } catch (const Error& error) {
    throw Error("step {}, position {}: {}", step, position, error.what());
  }
}

void Sampler::predict_quietly(const VocabularyRows& rows, std::int64_t step) {
  std::size_t row = 0;
  for (Sample& sample : samples_)
    for (const std::int64_t i : masked_positions(sample, options_.mask_id)) {
      const auto predict = [&] { return prediction_of(rows, row, options_, model_.dtype()); };
      set_prediction(sample, i, predict_at(i, step, predict));
      ++row;
    }
}

// hidden [W, width]: the conditional rows of all samples, then as many unconditional ones.
void Sampler::predict_noisily(const at::Tensor& hidden, std::int64_t step) {
  std::int64_t first = 0;  // the sample's first row
  const std::int64_t half = hidden.size(0) / 2;
  for (Sample& sample : samples_) {
    const auto count = static_cast<std::int64_t>(masked_positions(sample, options_.mask_id).size());
    const at::Tensor unconditional = options_.cfg > 0 ? hidden.narrow(0, half + first, count) : at::Tensor();
    predict_sample(sample, hidden.narrow(0, first, count), unconditional, step);
    first += count;
  }
}

// Noise is drawn for all positions, masked or not, in order: that is the stream of the original, which draws
// for the whole [S, V].
void Sampler::predict_sample(Sample& sample, const at::Tensor& hidden, const at::Tensor& unconditional,
                             std::int64_t step) {
  std::vector<double> noise(static_cast<std::size_t>(model_.config().head_rows));
  at::Tensor logits;  // float32 on the CPU, rows [first, first + rows_of_logits) of the sample's
  std::int64_t row = 0;
  for (std::int64_t i = 0; i < sample.length(); ++i) {
    sample.random.fill(noise);
    if (!is_masked(sample, i)) continue;
    if (row % rows_of_logits == 0) {
      const std::int64_t rows = std::min(rows_of_logits, hidden.size(0) - row);
      logits = model_.logits_of(hidden.narrow(0, row, rows));
      if (unconditional.defined())
        logits = guided_logits(logits, model_.logits_of(unconditional.narrow(0, row, rows)), options_.cfg);
      logits = logits.to(at::kCPU, at::kFloat).contiguous();
    }
    const std::span<float> values(logits[row % rows_of_logits].data_ptr<float>(), noise.size());
    const auto predict = [&] { return predict_with_noise(values, noise, options_, model_.dtype()); };
    set_prediction(sample, i, predict_at(i, step, predict));
    ++row;
  }
}

void Sampler::draw_confidences() {
  for (Sample& sample : samples_) {
    std::vector<float> uniform(sample.ids.size());
    sample.random.fill(uniform);
    std::copy(uniform.begin(), uniform.end(), sample.confidence.begin());
  }
}

// Masked positions before the block's end; also those that earlier blocks and the prompt left.
std::vector<std::uint8_t> Sampler::candidates(const Sample& sample, std::int64_t block_end) const {
  std::vector<std::uint8_t> result(sample.ids.size(), 0);
  for (std::int64_t i = 0; i < sample.prompt_length + block_end; ++i)
    if (is_masked(sample, i)) result[static_cast<std::size_t>(i)] = 1;
  return result;
}

void Sampler::remember(const TokenBatch& batch, const Observation& seen) {
  const bool as_used = options_.sinks.from == SinkSource::masked && seen.column_used.defined();
  const at::Tensor columns = as_used ? seen.column_used : seen.column_sum.sum(0);
  const at::Tensor& diagonal = as_used ? seen.diagonal_used : seen.diagonal;
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    const std::int64_t length = samples_[rows_[r].sample].length();
    rows_[r].previous = {columns.narrow(2, batch.offsets[r], length).contiguous(),
                         diagonal.narrow(2, batch.offsets[r], length).contiguous()};
  }
}

void Sampler::report(const TokenBatch& batch, const Observation& seen, std::int64_t step,
                     std::int64_t block_end) {
  for (std::size_t r = 0; r < samples_.size(); ++r) {  // the conditional rows come first
    const Sample& sample = samples_[r];
    const std::int64_t offset = batch.offsets[r];
    const auto own = [&](const at::Tensor& t) {
      return t.defined() ? t.narrow(-1, offset, sample.length()).contiguous() : t;
    };
    const auto of_sequence = [&](const at::Tensor& t) {
      return t.defined() ? t.select(0, static_cast<std::int64_t>(r)).contiguous() : t;
    };
    const std::vector<std::uint8_t> candidate = candidates(sample, block_end);
    std::vector<float> confidence(sample.ids.size(), std::numeric_limits<float>::quiet_NaN());
    for (std::size_t i = 0; i < confidence.size(); ++i)
      if (candidate[i] != 0) confidence[i] = static_cast<float>(sample.confidence[i]);
    StepRecord record;
    record.step = step;
    record.state = sample.ids;
    record.proposed = sample.proposed;
    record.confidence = confidence;
    record.removed = rows_[r].removed;
    if (options_.capture != Capture::none) record.column_sum = own(seen.column_sum);
    if (options_.capture == Capture::full) {
      record.diagonal = own(seen.diagonal);
      record.value_norm = own(seen.value_norm);
      record.row_entropy = of_sequence(seen.row_entropy);
      record.row_max = of_sequence(seen.row_max);
    }
    record.maps = seen.maps[r];
    observer_(r, record);
  }
}

}  // namespace

std::vector<SampleResult> sample_llada(const Transformer& model, std::span<const SampleRequest> samples,
                                       const LladaOptions& options, const StepObserver& observer) {
  validate(options);
  return Sampler(model, samples, options, observer).run();
}

}  // namespace sinkscope
