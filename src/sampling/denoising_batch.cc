#include "sampling/denoising_batch.h"

#include <sinkscope/error.h>
#include <sinkscope/memory.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "ops/parallel.h"
#include "ops/vocabulary_head.h"
#include "sampling/prediction.h"
#include "sampling/row_memory.h"
#include "sampling/sample_logits.h"

namespace sinkscope {
namespace {

// One row of the model's batch. With guidance a sample has two: they are ranked and masked separately.
struct Row {
  std::size_t sample = 0;
  bool unconditional = false;
  RowMemory memory = {};
};

// The keys that a pass loses: of all queries, or of single ones. Empty where nothing is removed.
struct PassRemoval {
  std::vector<std::uint8_t> keys = {};      // [L, H, K]
  std::vector<std::int32_t> row_keys = {};  // [L, H, N, room]

  bool any() const { return !keys.empty() || !row_keys.empty(); }
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
  RowStep step_of(const Row& row) const;
  PassRemoval removal_of(const Pass& pass);
  std::vector<std::uint8_t> join_removed(const Pass& pass);
  std::vector<std::int32_t> join_rows(const Pass& pass);
  std::vector<std::uint8_t> classes_of(const Row& row) const;
  RowRequest rows_wanted(const Pass& pass);
  ForwardResult forward(const Pass& pass, const PassRemoval& removal);
  ForwardResult forward_plain(const Pass& pass);
  std::vector<PredictionEffect> effects_on(const Pass& pass, std::size_t place, const at::Tensor& plain,
                                           const at::Tensor& changed);
  void measure_effect(const Pass& pass, const at::Tensor& plain, const ForwardResult& forwarded);
  void predict(const Pass& pass, const ForwardResult& forwarded);
  void remember(const Pass& pass, const Observation& seen);
  void remember_columns(const Pass& pass, const Observation& seen);
  void report(const Pass& pass, const Observation& seen);
  void report_row(std::size_t place, const Pass& pass, const Observation& seen);

  bool intervenes() const { return options_.sinks.top_k > 0; }
  bool ranks_by(SinkRank rank) const { return intervenes() && options_.sinks.rank == rank; }
  std::int64_t layer_heads() const { return model_.config().layers * model_.config().heads; }
  std::size_t samples_in(const Pass& pass) const {
    return guidance_ > 0 ? pass.rows.size() / 2 : pass.rows.size();
  }
  WantedRows wanted_rows(const Pass& pass, std::size_t place) const {
    return {pass.first_wanted[place], guidance_ > 0 ? pass.first_wanted[samples_in(pass) + place] : 0};
  }
  DenoisingSample& sample_of(std::size_t row) { return samples_[rows_[row].sample]; }

  const Transformer& model_;
  const DenoisingOptions& options_;
  double guidance_;
  DenoisingRule& rule_;
  const StepObserver& observer_;
  std::vector<DenoisingSample> samples_;
  std::vector<RandomStream> controls_;  // of each sample
  std::vector<PassPlan> plans_;         // of each sample
  std::vector<StepEffect> effects_;     // likewise, where asked for
  std::vector<Row> rows_;               // all conditional rows, then all unconditional ones
  std::int64_t room_ = 0;               // of rank own: keys in a list
  std::vector<std::uint8_t> listed_;    // of all keys of a pass: may stand in a list
  std::unique_ptr<KeyValueCache> cache_;
  ForwardWorkspace workspace_;
  ForwardWorkspace plain_workspace_;  // of the passes without the intervention
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
    check_row_counts(options.sinks, sample.length());
    room_ = std::max(room_, std::min<std::int64_t>(options.sinks.top_k, sample.length()));
    samples_.push_back(std::move(sample));
    controls_.emplace_back(request.seed + control_seed_offset);
  }
  for (const bool unconditional : {false, true})
    for (std::size_t s = 0; s < samples_.size(); ++s)
      if (!unconditional || guidance > 0) rows_.push_back({s, unconditional});
  plans_.resize(samples_.size());
  if (options.effect) effects_.resize(samples_.size());
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
  const PassRemoval removal = removal_of(pass);
  // First: the pass that generates writes its own keys and values over those of the other one.
  at::Tensor plain;
  if (options_.effect && removal.any()) plain = forward_plain(pass).hidden;
  const ForwardResult forwarded = forward(pass, removal);
  predict(pass, forwarded);
  if (options_.effect) measure_effect(pass, plain, forwarded);
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

std::vector<std::uint8_t> Batch::classes_of(const Row& row) const {
  std::vector<std::uint8_t> classes;
  for (std::int64_t i = 0; i < samples_[row.sample].length(); ++i)
    classes.push_back(static_cast<std::uint8_t>(class_of(row, i)));
  return classes;
}

RowStep Batch::step_of(const Row& row) const {
  const PassPlan& plan = plans_[row.sample];
  return {.layers = model_.config().layers,
          .heads = model_.config().heads,
          .classes = classes_of(row),
          .first = plan.first,
          .last = plan.last,
          .number = samples_[row.sample].result.steps,
          .forgets = options_.sinks.reset_at_block && plan.begins_block,
          .room = room_};
}

PassRemoval Batch::removal_of(const Pass& pass) {
  if (!intervenes()) return {};
  if (ranks_by(SinkRank::own)) return {.row_keys = join_rows(pass)};
  return {.keys = join_removed(pass)};
}

std::vector<std::int32_t> Batch::join_rows(const Pass& pass) {
  std::int64_t count = 0;
  for (const std::size_t row : pass.rows) {
    const std::size_t sample = rows_[row].sample;
    samples_[sample].result.control_missing +=
        choose_removed_for(rows_[row].memory, step_of(rows_[row]), options_.sinks, controls_[sample]);
    count += rows_[row].memory.removed_for.count;
  }
  if (count == 0) return {};
  const std::int64_t tokens = pass.tokens.tokens();
  std::vector<std::int32_t> joined(static_cast<std::size_t>(layer_heads() * tokens * room_), no_key);
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    const std::vector<std::int32_t>& own = rows_[pass.rows[place]].memory.removed_for.keys;
    const std::int64_t first = pass.tokens.offsets[place] * room_;
    const std::int64_t size = pass.tokens.offsets[place + 1] * room_ - first;
    for (std::int64_t m = 0; m < layer_heads() && !own.empty(); ++m)
      std::copy_n(own.begin() + m * size, size, joined.begin() + m * tokens * room_ + first);
  }
  return joined;
}

// The keys each row loses in this step, joined to [L, H, K]; empty in the first step.
std::vector<std::uint8_t> Batch::join_removed(const Pass& pass) {
  const std::int64_t maps = layer_heads();
  std::vector<std::uint8_t> joined(static_cast<std::size_t>(maps * pass.keys.back()), 0);
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    Row& row = rows_[pass.rows[place]];
    const std::int64_t length = samples_[row.sample].length();
    samples_[row.sample].result.control_missing +=
        choose_removed(row.memory, step_of(row), options_.sinks, controls_[row.sample]);
    for (std::int64_t m = 0; m < maps; ++m)
      std::copy_n(row.memory.removed.begin() + m * length, length,
                  joined.begin() + m * pass.keys.back() + pass.keys[place]);
  }
  const bool any =
      std::any_of(joined.begin(), joined.end(), [](std::uint8_t removed) { return removed != 0; });
  return any ? joined : std::vector<std::uint8_t>{};
}

// What the ranking of the next step needs of single rows.
RowRequest Batch::rows_wanted(const Pass& pass) {
  RowRequest rows;
  if (ranks_by(SinkRank::own)) {
    std::vector<std::uint8_t> classes;
    for (const std::size_t row : pass.rows) {
      const std::vector<std::uint8_t> own = classes_of(rows_[row]);
      classes.insert(classes.end(), own.begin(), own.end());
    }
    rows = row_request(options_.sinks, classes, listed_);
    rows.most = room_;
    if (rows.least > 0) rows.least = 2 * room_;
  }
  rows.last = ranks_by(SinkRank::last);
  rows.as_used = options_.sinks.from == SinkSource::masked;
  rows.changed_share = options_.effect;
  return rows;
}

ForwardResult Batch::forward(const Pass& pass, const PassRemoval& removal) {
  const bool by_rows = ranks_by(SinkRank::own) || ranks_by(SinkRank::last);
  const bool by_columns = intervenes() && !by_rows;
  const Capture recorded = observer_ ? options_.capture : Capture::none;
  return model_.forward({.tokens = pass.tokens,
                         .wanted = pass.wanted,
                         .head = rule_.head(),
                         .vocabulary = rule_.vocabulary(),
                         .capture = by_columns ? std::max(recorded, Capture::columns) : recorded,
                         .maps = observer_ ? options_.maps : std::vector<LayerHead>{},
                         .removed = removal.keys.empty() ? nullptr : removal.keys.data(),
                         .row_removed = {removal.row_keys.empty() ? nullptr : removal.row_keys.data(), room_},
                         .change = options_.sinks.change,
                         .rows = rows_wanted(pass),
                         .cached = cache_ == nullptr ? nullptr : &pass.cached},
                        workspace_);
}

// The rows of the last step's input once more, without the intervention.
ForwardResult Batch::forward_plain(const Pass& pass) {
  return model_.forward({.tokens = pass.tokens,
                         .wanted = pass.wanted,
                         .head = Head::none,
                         .cached = cache_ == nullptr ? nullptr : &pass.cached},
                        plain_workspace_);
}

std::vector<PredictionEffect> Batch::effects_on(const Pass& pass, std::size_t place, const at::Tensor& plain,
                                                const at::Tensor& changed) {
  const std::int64_t count = pass.first_wanted[place + 1] - pass.first_wanted[place];
  std::vector<PredictionEffect> effects(static_cast<std::size_t>(count));
  if (!plain.defined()) return effects;
  std::vector<std::int32_t> forbidden = rule_.vocabulary().forbidden;
  if (options_.forbid_mask) forbidden.push_back(options_.mask_id);
  const auto row_of = [&](const at::Tensor& logits, std::int64_t row) {
    const auto width = static_cast<std::size_t>(logits.size(1));
    const std::span<float> values(logits.data_ptr<float>() + row * logits.size(1), width);
    forbid(values, forbidden);
    return values;
  };
  for (std::int64_t begin = 0; begin < count; begin += rows_of_logits) {
    const std::int64_t rows = std::min(rows_of_logits, count - begin);
    const auto read = [&](const at::Tensor& hidden) {
      return read_logits(model_, hidden, guidance_, wanted_rows(pass, place), begin, rows);
    };
    const at::Tensor before = read(plain), after = read(changed);
    parallel_for(rows, [&](std::int64_t row) {
      effects[static_cast<std::size_t>(begin + row)] =
          compare_predictions(row_of(before, row), row_of(after, row));
    });
  }
  return effects;
}

// plain: hidden rows of the pass without the intervention; undefined where it removed nothing.
void Batch::measure_effect(const Pass& pass, const at::Tensor& plain, const ForwardResult& forwarded) {
  const at::Tensor mass = forwarded.observation.changed_share.mean(at::IntArrayRef{0, 1});  // [N]
  for (std::size_t place = 0; place < samples_in(pass); ++place) {
    const std::size_t number = rows_[pass.rows[place]].sample;
    const DenoisingSample& sample = samples_[number];
    const PassPlan& plan = plans_[number];
    std::vector<PredictionEffect> effects;
    try {
      effects = effects_on(pass, place, plain, forwarded.hidden);
    } catch (const Error& error) {
      throw Error("step {}, without the intervention: {}", sample.result.steps, error.what());
    }
    const std::vector<float> nothing(sample.ids.size(), std::numeric_limits<float>::quiet_NaN());
    StepEffect& step = effects_[number];
    step = {nothing, std::vector<std::uint8_t>(sample.ids.size(), 255), nothing, nothing, nothing};
    const std::vector<std::int64_t> rows = rows_of_predictions(rule_, plan);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const PredictionEffect& effect = effects[static_cast<std::size_t>(rows[i])];
      const auto position = static_cast<std::size_t>(plan.predicted[i]);
      const std::int64_t token =
          pass.tokens.offsets[place] + rule_.source(plan.predicted[i], plan) - plan.first;
      step.kl[position] = static_cast<float>(effect.kl);
      step.agrees[position] = effect.agrees ? 1 : 0;
      step.confidence[position] = static_cast<float>(effect.confidence);
      step.probability[position] = static_cast<float>(effect.probability);
      step.removed_mass[position] = mass.data_ptr<float>()[token];
    }
  }
}

void Batch::predict(const Pass& pass, const ForwardResult& forwarded) {
  for (std::size_t place = 0; place < samples_in(pass); ++place) {
    const std::size_t number = rows_[pass.rows[place]].sample;
    DenoisingSample& sample = samples_[number];
    const PassPlan& plan = plans_[number];
    sample.proposed.assign(sample.ids.size(), -1);
    sample.confidence.assign(sample.ids.size(), std::numeric_limits<double>::quiet_NaN());
    SampleLogits logits(model_, forwarded, guidance_, wanted_rows(pass, place),
                        rows_of_predictions(rule_, plan));
    rule_.predict(number, sample, plan, logits);
  }
}

void Batch::remember(const Pass& pass, const Observation& seen) {
  if (!ranks_by(SinkRank::own) && !ranks_by(SinkRank::last)) return remember_columns(pass, seen);
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    Row& row = rows_[pass.rows[place]];
    const std::int64_t length = samples_[row.sample].length();
    if (ranks_by(SinkRank::own))
      remember_lists(row.memory, step_of(row), pass.tokens.offsets[place], seen);
    else if (plans_[row.sample].last == length)  // else its latest row stays
      remember_last_row(row.memory, pass.keys[place], length, seen);
  }
}

void Batch::remember_columns(const Pass& pass, const Observation& seen) {
  const bool as_used = options_.sinks.from == SinkSource::masked && seen.column_used.defined();
  const at::Tensor columns = as_used ? seen.column_used : seen.column_sum.sum(0);
  const at::Tensor& diagonal = as_used ? seen.diagonal_used : seen.diagonal;
  for (std::size_t place = 0; place < pass.rows.size(); ++place) {
    Row& row = rows_[pass.rows[place]];
    const std::int64_t length = samples_[row.sample].length();
    row.memory.columns = columns.narrow(2, pass.keys[place], length).contiguous();
    row.memory.diagonal = diagonal.narrow(2, pass.keys[place], length).contiguous();
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
  record.removed = row.memory.removed;
  record.queries_without_key = row.memory.removed_for.queries;
  if (options_.capture != Capture::none) record.column_sum = own(seen.column_sum);
  if (options_.capture == Capture::full) {
    record.diagonal = own(seen.diagonal);
    record.value_norm = own(seen.value_norm);
    record.row_entropy = of_sequence(seen.row_entropy);
    record.row_max = of_sequence(seen.row_max);
  }
  record.maps = seen.maps[place];
  if (options_.effect) record.effect = &effects_[row.sample];
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
