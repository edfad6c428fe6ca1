#include "sampling/denoising_batch.h"

#include <c10/core/InferenceMode.h>
#include <sinkscope/error.h>
#include <sinkscope/memory.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "ops/parallel.h"
#include "ops/vocabulary_head.h"

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
  PreviousStep previous = {};
  std::vector<std::uint8_t> removed = {};  // [L, H, S] in this step
};

// What one pass works on: the rows of unfinished samples, all conditional ones first.
struct Pass {
  std::vector<std::size_t> rows;  // of Batch::rows_
  TokenBatch tokens = {};
  std::vector<std::int64_t> keys{0};            // [rows + 1] first key of each row; every row has its S keys
  std::vector<std::int64_t> wanted = {};        // tokens whose logits are wanted
  std::vector<std::int64_t> first_wanted = {};  // [rows + 1] of `wanted`
  CachedTokens cached = {};
};

// The logits of one sample, read from what the pass left of them.
class SampleLogits : public PredictedLogits {
 public:
  SampleLogits(const Transformer& model, const ForwardResult& forwarded, double guidance, std::int64_t first,
               std::int64_t unconditional, std::vector<std::int64_t> rows)
      : model_(model),
        forwarded_(forwarded),
        guidance_(guidance),
        first_(first),
        unconditional_(unconditional),
        rows_(std::move(rows)) {}

  const VocabularyRows& rows() const override { return forwarded_.vocabulary; }
  std::size_t row(std::size_t index) const override {
    return static_cast<std::size_t>(first_ + rows_[index]);
  }

  // Some rows at a time: all of them may be many times what a pass takes.
  std::span<float> logits(std::size_t index) override {
    const std::int64_t wanted = rows_[index];
    if (!chunk_.defined() || wanted >= begin_ + chunk_.size(0)) read_from(wanted);
    return row_of_chunk(wanted);
  }

  void for_each(const std::function<void(std::size_t index, std::span<float> logits)>& body) override {
    std::size_t first = 0;  // prediction
    while (first < rows_.size()) {
      read_from(rows_[first]);
      std::vector<std::size_t> firsts;  // the first prediction of each row of the chunk
      std::size_t last = first;
      for (; last < rows_.size() && rows_[last] < begin_ + chunk_.size(0); ++last)
        if (last == first || rows_[last] != rows_[last - 1]) firsts.push_back(last);
      parallel_for(static_cast<std::int64_t>(firsts.size()), [&](std::int64_t i) {
        const c10::InferenceMode no_autograd;  // a thread's own
        for (std::size_t p = firsts[static_cast<std::size_t>(i)];
             p < last && rows_[p] == rows_[firsts[static_cast<std::size_t>(i)]]; ++p)
          body(p, row_of_chunk(rows_[p]));
      });
      first = last;
    }
  }

 private:
  std::span<float> row_of_chunk(std::int64_t row) const {
    const auto width = static_cast<std::size_t>(chunk_.size(1));
    return {chunk_.data_ptr<float>() + (row - begin_) * chunk_.size(1), width};
  }
  void read_from(std::int64_t row) {
    begin_ = row;
    const std::int64_t count = std::min(rows_of_logits, rows_.back() + 1 - row);
    chunk_ = model_.logits_of(forwarded_.hidden.narrow(0, first_ + row, count));
    if (guidance_ > 0)
      chunk_ = guided_logits(
          chunk_, model_.logits_of(forwarded_.hidden.narrow(0, unconditional_ + row, count)), guidance_);
    chunk_ = chunk_.to(at::kCPU, at::kFloat).contiguous();
  }

  const Transformer& model_;
  const ForwardResult& forwarded_;
  double guidance_;
  std::int64_t first_;              // of the sample's rows among the wanted ones
  std::int64_t unconditional_;      // likewise of its unconditional row
  std::vector<std::int64_t> rows_;  // of each prediction, from first_
  std::int64_t begin_ = 0;
  at::Tensor chunk_;  // float32 on the CPU, rows from begin_ on
};

class Batch {
 public:
  Batch(const Transformer& model, std::span<const SampleRequest> requests, const DenoisingOptions& options,
        double guidance, DenoisingRule& rule, const StepObserver& observer);
  std::vector<SampleResult> run();

 private:
  void step();
  void plan_samples();
  Pass make_pass();
  void add_row(const Row& row, Pass& pass);
  std::int32_t input_of(const Row& row, std::int64_t position) const;
  QueryClass class_of(const Row& row, std::int64_t position) const;
  void choose_for(Row& row);
  std::vector<std::uint8_t> choose_removed(const Pass& pass);
  ForwardResult forward(const Pass& pass, const std::vector<std::uint8_t>& removed);
  void predict(const Pass& pass, const ForwardResult& forwarded);
  void remember(const Pass& pass, const Observation& seen);
  void report(const Pass& pass, const Observation& seen);
  void report_row(std::size_t place, const Pass& pass, const Observation& seen);

  bool intervenes() const { return options_.sinks.top_k > 0; }
  DenoisingSample& sample_of(std::size_t row) { return samples_[rows_[row].sample]; }

  const Transformer& model_;
  const DenoisingOptions& options_;
  double guidance_;
  DenoisingRule& rule_;
  const StepObserver& observer_;
  std::vector<DenoisingSample> samples_;
  std::vector<RandomStream> controls_;  // of each sample
  std::vector<PassPlan> plans_;         // of each sample
  std::vector<Row> rows_;               // all conditional rows, then all unconditional ones
  std::unique_ptr<KeyValueCache> cache_;
  ForwardWorkspace workspace_;
};

Batch::Batch(const Transformer& model, std::span<const SampleRequest> requests,
             const DenoisingOptions& options, double guidance, DenoisingRule& rule,
             const StepObserver& observer)
    : model_(model), options_(options), guidance_(guidance), rule_(rule), observer_(observer) {
  for (const SampleRequest& request : requests) {
    DenoisingSample sample{
        request.prompt, {}, static_cast<std::int64_t>(request.prompt.size()), RandomStream(request.seed)};
    sample.ids.resize(request.prompt.size() + static_cast<std::size_t>(options.gen_len), options.mask_id);
    for (const std::int32_t id : sample.ids) sample.given.push_back(id != options.mask_id ? 1 : 0);
    samples_.push_back(std::move(sample));
    controls_.emplace_back(request.seed + control_seed_offset);
  }
  for (const bool unconditional : {false, true})
    for (std::size_t s = 0; s < samples_.size(); ++s)
      if (!unconditional || guidance > 0) rows_.push_back({s, unconditional});
  plans_.resize(samples_.size());
  if (options.cache == CacheMode::none) return;
  std::vector<std::int64_t> capacities;
  for (const Row& row : rows_) capacities.push_back(samples_[row.sample].length());
  cache_ = std::make_unique<KeyValueCache>(model.config(), model.dtype(), model.device(), capacities);
}

std::vector<SampleResult> Batch::run() {
  while (std::any_of(samples_.begin(), samples_.end(), [](const DenoisingSample& s) { return !s.finished; }))
    step();
  std::vector<SampleResult> results;
  for (DenoisingSample& sample : samples_) {
    sample.result.masks_left = std::count(sample.ids.begin(), sample.ids.end(), options_.mask_id);
    sample.result.ids = std::move(sample.ids);
    results.push_back(std::move(sample.result));
  }
  return results;
}

void Batch::step() {
  plan_samples();
  const Pass pass = make_pass();
  const std::vector<std::uint8_t> removed = choose_removed(pass);
  const ForwardResult forwarded = forward(pass, removed);
  predict(pass, forwarded);
  if (intervenes()) remember(pass, forwarded.observation);
  if (observer_) report(pass, forwarded.observation);
  for (std::size_t place = 0; place < pass.rows.size(); ++place)
    sample_of(pass.rows[place]).result.empty_rows += forwarded.observation.empty_rows[place];
  for (const std::size_t row : pass.rows) {
    if (rows_[row].unconditional) continue;
    DenoisingSample& sample = sample_of(row);
    rule_.open(rows_[row].sample, sample);
    ++sample.result.steps;
    ++sample.result.forward_passes;
  }
}

void Batch::plan_samples() {
  for (std::size_t s = 0; s < samples_.size(); ++s)
    if (!samples_[s].finished) plans_[s] = rule_.plan(s, samples_[s]);
}

// The unconditional row hides what the prompt gives.
std::int32_t Batch::input_of(const Row& row, std::int64_t position) const {
  const DenoisingSample& sample = samples_[row.sample];
  const auto i = static_cast<std::size_t>(position);
  return row.unconditional && sample.given[i] != 0 ? options_.mask_id : sample.ids[i];
}

QueryClass Batch::class_of(const Row& row, std::int64_t position) const {
  if (input_of(row, position) == options_.mask_id) return QueryClass::masked;
  return position < samples_[row.sample].prompt_length ? QueryClass::prompt : QueryClass::decoded;
}

// Tokens of one row from `first` on, of the wanted ones those that predict something.
void Batch::add_row(const Row& row, Pass& pass) {
  const DenoisingSample& sample = samples_[row.sample];
  const PassPlan& plan = plans_[row.sample];
  const std::int64_t begin = pass.tokens.tokens();
  for (std::int64_t i = plan.first; i < plan.last; ++i) {
    pass.tokens.ids.push_back(input_of(row, i));
    pass.tokens.query_class.push_back(static_cast<std::uint8_t>(class_of(row, i)));
  }
  pass.tokens.offsets.push_back(pass.tokens.tokens());
  pass.keys.push_back(pass.keys.back() + sample.length());
  pass.first_wanted.push_back(static_cast<std::int64_t>(pass.wanted.size()));
  for (const std::int64_t position : plan.predicted) {
    const std::int64_t token = begin + rule_.source(position, plan) - plan.first;
    const bool new_one = static_cast<std::int64_t>(pass.wanted.size()) == pass.first_wanted.back() ||
                         pass.wanted.back() != token;
    if (new_one) pass.wanted.push_back(token);
  }
}

Pass Batch::make_pass() {
  Pass pass;
  pass.cached.cache = cache_.get();
  for (std::size_t r = 0; r < rows_.size(); ++r) {
    if (sample_of(r).finished) continue;
    const PassPlan& plan = plans_[rows_[r].sample];
    pass.rows.push_back(r);
    add_row(rows_[r], pass);
    pass.cached.slots.push_back(static_cast<std::int64_t>(r));
    pass.cached.first_positions.push_back(plan.first);
  }
  pass.first_wanted.push_back(static_cast<std::int64_t>(pass.wanted.size()));
  return pass;
}

// The keys a row loses in this step; none where there is no previous step to rank by.
void Batch::choose_for(Row& row) {
  DenoisingSample& sample = samples_[row.sample];
  const auto cells =
      static_cast<std::size_t>(model_.config().layers * model_.config().heads * sample.length());
  const bool forgets = options_.sinks.reset_at_block && plans_[row.sample].begins_block;
  if (!row.previous.columns.defined() || forgets) {
    row.removed.assign(cells, 0);
    return;
  }
  std::vector<std::uint8_t> classes;
  for (std::int64_t i = 0; i < sample.length(); ++i)
    classes.push_back(static_cast<std::uint8_t>(class_of(row, i)));
  const StepScores scores{{row.previous.columns.data_ptr<float>(), cells},
                          {row.previous.diagonal.data_ptr<float>(), cells},
                          classes,
                          static_cast<std::size_t>(sample.length()),
                          static_cast<std::size_t>(model_.config().heads),
                          sample.result.steps};
  RemovedKeys chosen =
      choose_removed_keys(scores, options_.sinks, [&](std::int64_t count, std::int64_t wanted) {
        return controls_[row.sample].permutation(count, wanted);
      });
  row.removed = std::move(chosen.removed);
  sample.result.control_missing += chosen.missing;
}

// The keys each row loses in this step, joined to [L, H, K]; empty in the first step and without an
// intervention.
std::vector<std::uint8_t> Batch::choose_removed(const Pass& pass) {
  if (!intervenes()) return {};
  const std::int64_t maps = model_.config().layers * model_.config().heads;
  std::vector<std::uint8_t> joined(static_cast<std::size_t>(maps * pass.keys.back()), 0);
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    Row& row = rows_[pass.rows[place]];
    const std::int64_t length = samples_[row.sample].length();
    choose_for(row);
    for (std::int64_t m = 0; m < maps; ++m)
      std::copy_n(row.removed.begin() + m * length, length,
                  joined.begin() + m * pass.keys.back() + pass.keys[place]);
  }
  const bool any =
      std::any_of(joined.begin(), joined.end(), [](std::uint8_t removed) { return removed != 0; });
  return any ? joined : std::vector<std::uint8_t>{};
}

ForwardResult Batch::forward(const Pass& pass, const std::vector<std::uint8_t>& removed) {
  const Capture capture = intervenes() ? std::max(options_.capture, Capture::columns) : options_.capture;
  return model_.forward({.tokens = pass.tokens,
                         .wanted = pass.wanted,
                         .head = rule_.head(),
                         .vocabulary = rule_.vocabulary(),
                         .capture = observer_ || intervenes() ? capture : Capture::none,
                         .maps = observer_ ? options_.maps : std::vector<LayerHead>{},
                         .removed = removed.empty() ? nullptr : removed.data(),
                         .change = options_.sinks.change,
                         .cached = cache_ == nullptr ? nullptr : &pass.cached},
                        workspace_);
}

void Batch::predict(const Pass& pass, const ForwardResult& forwarded) {
  const std::size_t samples = guidance_ > 0 ? pass.rows.size() / 2 : pass.rows.size();
  for (std::size_t place = 0; place < samples; ++place) {
    const std::size_t number = rows_[pass.rows[place]].sample;
    DenoisingSample& sample = samples_[number];
    const PassPlan& plan = plans_[number];
    sample.proposed.assign(sample.ids.size(), -1);
    sample.confidence.assign(sample.ids.size(), std::numeric_limits<double>::quiet_NaN());
    std::vector<std::int64_t> rows;
    std::int64_t previous = -1;
    for (const std::int64_t position : plan.predicted) {
      const std::int64_t source = rule_.source(position, plan);
      rows.push_back(rows.empty() ? 0 : rows.back() + (source == previous ? 0 : 1));
      previous = source;
    }
    SampleLogits logits(model_, forwarded, guidance_, pass.first_wanted[place],
                        guidance_ > 0 ? pass.first_wanted[samples + place] : 0, std::move(rows));
    rule_.predict(number, sample, plan, logits);
  }
}

void Batch::remember(const Pass& pass, const Observation& seen) {
  const bool as_used = options_.sinks.from == SinkSource::masked && seen.column_used.defined();
  const at::Tensor columns = as_used ? seen.column_used : seen.column_sum.sum(0);
  const at::Tensor& diagonal = as_used ? seen.diagonal_used : seen.diagonal;
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    Row& row = rows_[pass.rows[place]];
    const std::int64_t length = samples_[row.sample].length();
    row.previous = {columns.narrow(2, pass.keys[place], length).contiguous(),
                    diagonal.narrow(2, pass.keys[place], length).contiguous()};
  }
}

void Batch::report(const Pass& pass, const Observation& seen) {
  for (std::size_t place = 0; place < pass.rows.size(); ++place)
    if (!rows_[pass.rows[place]].unconditional) report_row(place, pass, seen);
}

void Batch::report_row(std::size_t place, const Pass& pass, const Observation& seen) {
  const Row& row = rows_[pass.rows[place]];
  const DenoisingSample& sample = samples_[row.sample];
  const auto own = [&](const at::Tensor& t) {
    return t.defined() ? t.narrow(-1, pass.keys[place], sample.length()).contiguous() : t;
  };
  const auto of_sequence = [&](const at::Tensor& t) {
    return t.defined() ? t.select(0, static_cast<std::int64_t>(place)).contiguous() : t;
  };
  const std::vector<std::uint8_t> candidate = rule_.candidates(row.sample, sample);
  std::vector<float> confidence(sample.ids.size(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t i = 0; i < confidence.size(); ++i)
    if (candidate[i] != 0) confidence[i] = static_cast<float>(sample.confidence[i]);
  StepRecord record;
  record.step = sample.result.steps;
  record.state = sample.ids;
  record.proposed = sample.proposed;
  record.confidence = confidence;
  record.removed = row.removed;
  if (options_.capture != Capture::none) record.column_sum = own(seen.column_sum);
  if (options_.capture == Capture::full) {
    record.diagonal = own(seen.diagonal);
    record.value_norm = own(seen.value_norm);
    record.row_entropy = of_sequence(seen.row_entropy);
    record.row_max = of_sequence(seen.row_max);
  }
  record.maps = seen.maps[place];
  observer_(row.sample, record);
}

}  // namespace

std::vector<std::int64_t> masked_positions(const DenoisingSample& sample, std::int32_t mask_id,
                                           std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> positions;
  for (std::int64_t i = first; i < last; ++i)
    if (sample.ids[static_cast<std::size_t>(i)] == mask_id) positions.push_back(i);
  return positions;
}

std::vector<SampleResult> denoise(const Transformer& model, std::span<const SampleRequest> requests,
                                  const DenoisingOptions& options, double guidance, DenoisingRule& rule,
                                  const StepObserver& observer) {
  return Batch(model, requests, options, guidance, rule, observer).run();
}

}  // namespace sinkscope
