#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <sinkscope/autoregressive_sampler.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "model/text_length.h"
#include "sampling/random_stream.h"
#include "sampling/token_distribution.h"

namespace sinkscope {
namespace {

struct Sequence {
  std::vector<std::int32_t> ids;
  std::int64_t prompt_length = 0;
  RandomStream random;
  RandomStream control;
  // [L, H, n] of the n tokens before the one in work: what the intervention ranks by, and likewise their
  // attention to themselves
  at::Tensor scores = {};
  at::Tensor diagonal = {};
  // [L, H, n] column sums over all queries so far, where these are what is ranked by; and A_jj
  at::Tensor total = {};
  at::Tensor total_diagonal = {};
  std::vector<std::uint8_t> removed = {};  // [L, H, n] for the token in work
  PredictionEffect effect = {};
  float removed_mass = 0;
  SampleResult result = {};
  bool finished = false;

  std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
};

// The next token of every unfinished sequence.
struct Step {
  std::vector<std::size_t> sequences = {};
  TokenBatch tokens = {};
  CachedTokens cached = {};
  std::vector<std::int64_t> keys{0};  // [sequences + 1]
};

class Decoder {
 public:
  Decoder(const Transformer& model, std::span<const SampleRequest> requests,
          const AutoregressiveOptions& options, const TokenObserver& observer);
  std::vector<SampleResult> run();

 private:
  void read_prompts();
  void remember_prompts(const TokenBatch& prompts, const CachedTokens& cached, const Observation& seen);
  Step make_step();
  std::vector<std::uint8_t> choose_removed(const Step& step);
  void choose_for(Sequence& sequence);
  ForwardResult forward(const Step& step, const std::vector<std::uint8_t>& removed);
  at::Tensor forward_plain(const Step& step);
  void measure_effect(const Step& step, const at::Tensor& plain, const ForwardResult& forwarded);
  void take_token(std::size_t place, const Step& step, const ForwardResult& forwarded);
  std::int32_t next_token(Sequence& sequence, std::size_t place, const ForwardResult& forwarded);
  void remember(Sequence& sequence, std::int64_t first_key, const Observation& seen) const;
  void remember_sums(Sequence& sequence, const at::Tensor& row, const at::Tensor& diagonal) const;
  at::Tensor queries_that_see(std::int64_t layer, std::int64_t keys) const;
  void report(std::size_t number, std::int64_t first_key, std::size_t place, const ForwardResult& forwarded);

  bool intervenes() const { return options_.sinks.top_k > 0; }
  bool sums_queries() const {
    const SinkRank rank = options_.sinks.rank;
    return intervenes() && (rank == SinkRank::columns || rank == SinkRank::visible);
  }
  bool needs_logits() const {
    return options_.temperature > 0 || options_.capture == Capture::full || options_.effect;
  }
  std::int64_t layer_heads() const { return model_.config().layers * model_.config().heads; }
  std::vector<std::int64_t> visible(std::int64_t layer, std::int64_t keys) const;

  const Transformer& model_;
  const AutoregressiveOptions& options_;
  const TokenObserver& observer_;
  std::vector<Sequence> sequences_;
  KeyValueCache cache_;
  ForwardWorkspace workspace_;
};

std::vector<std::int64_t> capacities(std::span<const SampleRequest> requests, std::int64_t gen_len) {
  std::vector<std::int64_t> result;
  for (const SampleRequest& request : requests)
    result.push_back(static_cast<std::int64_t>(request.prompt.size()) + gen_len);
  return result;
}

Decoder::Decoder(const Transformer& model, std::span<const SampleRequest> requests,
                 const AutoregressiveOptions& options, const TokenObserver& observer)
    : model_(model),
      options_(options),
      observer_(observer),
      cache_(model.config(), model.dtype(), model.device(), capacities(requests, options.gen_len)) {
  for (const SampleRequest& request : requests) {
    if (request.prompt.empty())
      throw UsageError(
          "a prompt is empty: an autoregressive model needs at least one token, its begin token say");
    const auto given = static_cast<std::int64_t>(request.prompt.size());
    check_text(model.config(), given, options.gen_len, "a prompt", "a prompt with what is generated");
    sequences_.push_back({request.prompt, given, RandomStream(request.seed),
                          RandomStream(request.seed + control_seed_offset)});
  }
}

std::vector<SampleResult> Decoder::run() {
  read_prompts();
  while (true) {
    const Step step = make_step();
    if (step.sequences.empty()) break;
    const std::vector<std::uint8_t> removed = choose_removed(step);
    // First: the pass that generates writes its own keys and values over those of the other one.
    at::Tensor plain;
    if (options_.effect && !removed.empty()) plain = forward_plain(step);
    const ForwardResult forwarded = forward(step, removed);
    if (options_.effect) measure_effect(step, plain, forwarded);
    for (std::size_t place = 0; place < step.sequences.size(); ++place) take_token(place, step, forwarded);
  }
  std::vector<SampleResult> results;
  for (Sequence& sequence : sequences_) {
    sequence.result.ids = std::move(sequence.ids);
    results.push_back(std::move(sequence.result));
  }
  return results;
}

// All tokens of the prompts but the last: the pass of the last one then has that query alone, whose row is
// recorded. Where it belongs to a prefix the tokens before it see it, so that it is read with them.
void Decoder::read_prompts() {
  TokenBatch batch;
  CachedTokens cached{&cache_, {}, {}};
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const std::vector<std::int32_t>& ids = sequences_[s].ids;
    if (ids.size() < 2) continue;
    const bool prefix_ends_here = model_.config().attention.prefix == sequences_[s].length();
    batch.ids.insert(batch.ids.end(), ids.begin(), ids.end() - (prefix_ends_here ? 0 : 1));
    batch.offsets.push_back(batch.tokens());
    cached.slots.push_back(static_cast<std::int64_t>(s));
    cached.first_positions.push_back(0);
  }
  batch.query_class.assign(batch.ids.size(), static_cast<std::uint8_t>(QueryClass::prompt));
  if (batch.ids.empty()) return;
  const ForwardResult forwarded =
      model_.forward({.tokens = batch,
                      .wanted = std::vector<std::int64_t>{},
                      .head = Head::none,
                      .capture = sums_queries() ? Capture::columns : Capture::none,
                      .cached = &cached},
                     workspace_);
  if (sums_queries()) remember_prompts(batch, cached, forwarded.observation);
}

// Column sums over the queries that were read, of the keys that were read: without the last token, or where
// it belongs to a prefix with it.
void Decoder::remember_prompts(const TokenBatch& prompts, const CachedTokens& cached,
                               const Observation& seen) {
  const at::Tensor columns = seen.column_sum.sum(0);
  for (std::size_t b = 0; b < cached.slots.size(); ++b) {
    Sequence& sequence = sequences_[static_cast<std::size_t>(cached.slots[b])];
    const std::int64_t first = prompts.offsets[b], keys = prompts.offsets[b + 1] - first;
    sequence.total = columns.narrow(2, first, keys).contiguous();
    sequence.total_diagonal = seen.diagonal.narrow(2, first, keys).contiguous();
  }
}

Step Decoder::make_step() {
  Step step;
  step.cached.cache = &cache_;
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const Sequence& sequence = sequences_[s];
    if (sequence.finished) continue;
    const bool in_prompt = sequence.length() == sequence.prompt_length;
    step.sequences.push_back(s);
    step.tokens.ids.push_back(sequence.ids.back());
    step.tokens.query_class.push_back(
        static_cast<std::uint8_t>(in_prompt ? QueryClass::prompt : QueryClass::decoded));
    step.tokens.offsets.push_back(step.tokens.tokens());
    step.cached.slots.push_back(static_cast<std::int64_t>(s));
    step.cached.first_positions.push_back(sequence.length() - 1);
    step.keys.push_back(step.keys.back() + sequence.length());
  }
  return step;
}

std::uint8_t class_of_key(const Sequence& sequence, std::int64_t key) {
  return static_cast<std::uint8_t>(key < sequence.prompt_length ? QueryClass::prompt : QueryClass::decoded);
}

// Of `keys` those that the last query of this layer sees: a prefix LM's prefix, and the last of them where
// attention has a window.
std::vector<std::int64_t> Decoder::visible(std::int64_t layer, std::int64_t keys) const {
  const std::int64_t window = model_.config().window_of(layer), prefix = model_.config().attention.prefix;
  std::vector<std::int64_t> seen;
  for (std::int64_t key = 0; key < keys; ++key)
    if (window == 0 || key >= keys - window || key < prefix) seen.push_back(key);
  return seen;
}

// The picked keys of the previous row; the newest key was not there yet and stays, and those that the row did
// not see are neither picked nor counted.
void Decoder::choose_for(Sequence& sequence) {
  const std::int64_t length = sequence.length(), heads = model_.config().heads;
  const InterventionOptions& sinks = options_.sinks;
  sequence.removed.assign(static_cast<std::size_t>(layer_heads() * length), 0);
  if (!sinks.steps.contains(sequence.result.steps)) return;
  const DrawIndices draw = [&](std::int64_t count, std::int64_t wanted) {
    return sequence.control.permutation(count, wanted);
  };
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer) {
    if (!sinks.layers.contains(layer)) continue;
    const std::vector<std::int64_t> seen = visible(layer, length - 1);
    std::vector<std::uint8_t> classes;
    for (const std::int64_t key : seen) classes.push_back(class_of_key(sequence, key));
    for (std::int64_t m = layer * heads; m < (layer + 1) * heads; ++m) {
      if (!sinks.heads.contains(m - layer * heads)) continue;
      const auto row = [&](const at::Tensor& all) {
        std::vector<float> values;
        for (const std::int64_t key : seen) values.push_back(all.data_ptr<float>()[m * (length - 1) + key]);
        return values;
      };
      const std::vector<float> scores = row(sequence.scores), diagonal = row(sequence.diagonal);
      const ChosenKeys chosen = choose_keys({scores, diagonal, classes}, sinks, draw);
      for (const int key : chosen.keys)
        sequence.removed[static_cast<std::size_t>(m * length + seen[static_cast<std::size_t>(key)])] = 1;
      sequence.result.control_missing += chosen.missing;
    }
  }
}

std::vector<std::uint8_t> Decoder::choose_removed(const Step& step) {
  if (!intervenes()) return {};
  std::vector<std::uint8_t> joined(static_cast<std::size_t>(layer_heads() * step.keys.back()), 0);
  for (std::size_t place = 0; place < step.sequences.size(); ++place) {
    Sequence& sequence = sequences_[step.sequences[place]];
    if (!sequence.scores.defined()) continue;
    choose_for(sequence);
    for (std::int64_t m = 0; m < layer_heads(); ++m)
      std::copy_n(sequence.removed.begin() + m * sequence.length(), sequence.length(),
                  joined.begin() + m * step.keys.back() + step.keys[place]);
  }
  const bool any =
      std::any_of(joined.begin(), joined.end(), [](std::uint8_t removed) { return removed != 0; });
  return any ? joined : std::vector<std::uint8_t>{};
}

ForwardResult Decoder::forward(const Step& step, const std::vector<std::uint8_t>& removed) {
  const bool looks = intervenes() || (observer_ && options_.capture != Capture::none);
  return model_.forward({.tokens = step.tokens,
                         .head = needs_logits() ? Head::logits : Head::vocabulary,
                         .capture = looks ? Capture::columns : Capture::none,
                         .removed = removed.empty() ? nullptr : removed.data(),
                         .change = options_.sinks.change,
                         .rows = {.changed_share = options_.effect},
                         .cached = &step.cached},
                        workspace_);
}

// [sequences, V]
at::Tensor Decoder::forward_plain(const Step& step) {
  return model_
      .forward(
          {.tokens = step.tokens, .head = Head::logits, .capture = Capture::none, .cached = &step.cached},
          workspace_)
      .logits.to(at::kCPU, at::kFloat)
      .contiguous();
}

void Decoder::measure_effect(const Step& step, const at::Tensor& plain, const ForwardResult& forwarded) {
  const at::Tensor changed = forwarded.logits.to(at::kCPU, at::kFloat).contiguous();
  const at::Tensor mass = forwarded.observation.changed_share.mean(at::IntArrayRef{0, 1});
  const auto width = static_cast<std::size_t>(changed.size(1));
  for (std::size_t place = 0; place < step.sequences.size(); ++place) {
    Sequence& sequence = sequences_[step.sequences[place]];
    sequence.effect = {};
    sequence.removed_mass = mass.data_ptr<float>()[place];
    if (!plain.defined()) continue;
    try {
      sequence.effect = compare_predictions({plain.data_ptr<float>() + place * width, width},
                                            {changed.data_ptr<float>() + place * width, width});
    } catch (const Error& error) {
      throw Error("token {}: {}", sequence.result.steps, error.what());
    }
  }
}

std::int32_t Decoder::next_token(Sequence& sequence, std::size_t place, const ForwardResult& forwarded) {
  if (!needs_logits()) {
    const VocabularyRows& rows = forwarded.vocabulary;
    if (!std::isfinite(rows.max[place]) || !std::isfinite(rows.sum_exp[place]))
      throw Error("token {}: the logits are not finite (NaN or infinity)", sequence.result.steps);
    return rows.token[place];
  }
  const at::Tensor row =
      forwarded.logits[static_cast<std::int64_t>(place)].to(at::kCPU, at::kFloat).contiguous().clone();
  const std::span<float> logits(row.data_ptr<float>(), static_cast<std::size_t>(row.numel()));
  std::vector<double> probability;
  softmax(logits, probability);  // refuses what is not finite
  if (options_.temperature == 0) return largest_index(logits);
  filter_logits(logits, {options_.temperature, options_.top_p, options_.top_k, /*top_k_first=*/true});
  softmax(logits, probability);
  std::vector<double> uniform(logits.size());
  sequence.random.fill(uniform);
  return draw_by_exponentials(probability, uniform);
}

// How many queries of `keys` positions see each key, [keys].
at::Tensor Decoder::queries_that_see(std::int64_t layer, std::int64_t keys) const {
  std::vector<float> counts;
  const std::int64_t window = model_.config().window_of(layer), prefix = model_.config().attention.prefix;
  for (std::int64_t key = 0; key < keys; ++key) {
    const std::int64_t behind = window > 0 ? std::min(window, keys - key) : keys - key;
    counts.push_back(static_cast<float>(key < prefix ? keys : behind));
  }
  return at::tensor(counts);
}

// Column sums over all queries so far, or the mean of those that see the key.
void Decoder::remember_sums(Sequence& sequence, const at::Tensor& row, const at::Tensor& diagonal) const {
  const std::int64_t length = sequence.length();
  const auto add = [&](at::Tensor& total, const at::Tensor& own) {
    if (total.defined() && total.size(2) == length) return;  // the query was read with the prompt
    total = total.defined() ? at::constant_pad_nd(total, {0, 1}) + own : own.contiguous();
  };
  add(sequence.total, row);
  add(sequence.total_diagonal, diagonal);
  sequence.scores = sequence.total;
  sequence.diagonal = sequence.total_diagonal;
  if (options_.sinks.rank == SinkRank::columns) return;
  std::vector<at::Tensor> counts;
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer)
    counts.push_back(queries_that_see(layer, length));
  const at::Tensor factor = static_cast<double>(length) / at::stack(counts).unsqueeze(1);
  sequence.scores = (sequence.total * factor).contiguous();
  sequence.diagonal = (sequence.total_diagonal * factor).contiguous();
}

void Decoder::remember(Sequence& sequence, std::int64_t first_key, const Observation& seen) const {
  const bool as_used = options_.sinks.from == SinkSource::masked && seen.column_used.defined();
  const auto length = sequence.length();
  const at::Tensor row = (as_used ? seen.column_used : seen.column_sum.sum(0)).narrow(-1, first_key, length);
  const at::Tensor diagonal = (as_used ? seen.diagonal_used : seen.diagonal).narrow(-1, first_key, length);
  if (sums_queries()) return remember_sums(sequence, row, diagonal);
  std::vector<float> seen_keys;  // [L]
  for (std::int64_t layer = 0; layer < model_.config().layers; ++layer)
    seen_keys.push_back(static_cast<float>(visible(layer, length).size()));
  const at::Tensor counts = at::tensor(seen_keys).view({-1, 1, 1});
  sequence.scores = (row * counts).contiguous();
  sequence.diagonal = (diagonal * counts).contiguous();
}

void Decoder::report(std::size_t number, std::int64_t first_key, std::size_t place,
                     const ForwardResult& forwarded) {
  const Sequence& sequence = sequences_[number];
  TokenRecord record;
  record.step = sequence.result.steps;
  record.sequence = sequence.ids;
  if (options_.capture != Capture::none)
    record.last_row =
        forwarded.observation.column_sum.narrow(-1, first_key, sequence.length()).sum(0).contiguous();
  record.removed = sequence.removed;
  record.effect = sequence.effect;
  record.removed_mass = sequence.removed_mass;
  at::Tensor logits;
  if (options_.capture == Capture::full) {
    logits = forwarded.logits[static_cast<std::int64_t>(place)].to(at::kCPU, at::kFloat).contiguous();
    record.logits = {logits.data_ptr<float>(), static_cast<std::size_t>(logits.numel())};
  }
  observer_(number, record);
}

void Decoder::take_token(std::size_t place, const Step& step, const ForwardResult& forwarded) {
  const std::size_t number = step.sequences[place];
  Sequence& sequence = sequences_[number];
  const std::int32_t token = next_token(sequence, place, forwarded);
  if (observer_) report(number, step.keys[place], place, forwarded);
  if (intervenes()) remember(sequence, step.keys[place], forwarded.observation);
  sequence.result.empty_rows += forwarded.observation.empty_rows[place];
  sequence.ids.push_back(token);
  ++sequence.result.steps;
  ++sequence.result.forward_passes;
  const std::span<const std::int32_t> generated =
      std::span(sequence.ids).subspan(static_cast<std::size_t>(sequence.prompt_length));
  sequence.finished =
      sequence.result.steps == options_.gen_len ||
      std::find(options_.end_ids.begin(), options_.end_ids.end(), token) != options_.end_ids.end() ||
      (options_.stop && options_.stop(number, generated));
}

}  // namespace

void validate(const AutoregressiveOptions& options) {
  if (options.gen_len < 1 || options.gen_len > (std::int64_t{1} << 24))
    throw UsageError("--gen-len is {}; it must be at least 1, at most {}", options.gen_len,
                     std::int64_t{1} << 24);
  if (!(options.temperature >= 0) || !std::isfinite(options.temperature))
    throw UsageError("--temperature is {}; it must be a number of at least 0", options.temperature);
  validate_filters(options.top_p, options.top_k);
  validate_effect(options.effect, options.sinks);
  validate(options.sinks);
}

std::vector<SampleResult> sample_autoregressive(const Transformer& model,
                                                std::span<const SampleRequest> samples,
                                                const AutoregressiveOptions& options,
                                                const TokenObserver& observer) {
  validate(options);
  return Decoder(model, samples, options, observer).run();
}

}  // namespace sinkscope
