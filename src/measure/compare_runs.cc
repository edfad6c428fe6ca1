#include "measure/compare_runs.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "measure/effect.h"
#include "measure/quotient.h"
#include "measure/recorded_run.h"
#include "measure/sample_pair.h"
#include "measure/statistics.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

struct Run {
  fs::path folder;
  RunInfo info;
  std::map<std::int64_t, SampleRecord> samples;  // by index
};

// A sample's text against its reference, in both runs.
struct ExactMatch {
  bool a = false, b = false;
};

struct Compared {
  std::int64_t index = 0;
  SamplePair pair;
  std::optional<ExactMatch> match;
};

template <typename Value>
OrderedJson or_null(const std::optional<Value>& value) {
  return value ? OrderedJson(*value) : OrderedJson(nullptr);
}

Run open_run(const fs::path& folder, const CompareCallbacks& callbacks) {
  RecordedRun recorded = open_recorded_run(folder, "compared", callbacks.note);
  Run run{folder, std::move(recorded.info), {}};
  for (SampleRecord& record : recorded.samples) run.samples.emplace(record.index, std::move(record));
  return run;
}

const char* kind_of(const Run& run) { return run.info.model.mask_id ? "diffusion" : "autoregressive"; }

void check_kinds(const Run& a, const Run& b, const CompareCallbacks& callbacks) {
  const RunModel &of_a = a.info.model, &of_b = b.info.model;
  if (of_a.mask_id.has_value() != of_b.mask_id.has_value())
    throw Error("{} is a run of a model of the kind {}, {} of the kind {}; runs of one kind can be compared",
                a.folder.string(), kind_of(a), b.folder.string(), kind_of(b));
  if (of_a.mask_id != of_b.mask_id)
    throw Error("{} has the mask id {} and {} has {}; runs with the same tokens can be compared",
                a.folder.string(), *of_a.mask_id, b.folder.string(), *of_b.mask_id);
  if (!callbacks.note) return;
  if (of_a.name != of_b.name || of_a.weights_sha256 != of_b.weights_sha256)
    callbacks.note(
        fmt::format("the runs are of different models or weights: {} and {}", of_a.name, of_b.name));
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view white = " \t\n\v\f\r";
  const std::size_t begin = text.find_first_not_of(white);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(white) - begin + 1);
}

bool matches(const SampleRecord& record) { return trimmed(record.text) == trimmed(*record.reference); }

// Pairs of samples, one after the other; samples without a partner are told why.
class Pairing {
 public:
  Pairing(const Run& a, const Run& b, const CompareCallbacks& callbacks)
      : a_(a), b_(b), callbacks_(callbacks) {}

  std::vector<Compared> compare() {
    std::vector<Compared> compared;
    std::size_t done = 0;
    for (const auto& [index, record] : a_.samples) {
      const auto partner = b_.samples.find(index);
      if (partner == b_.samples.end())
        leave_out(index, "only in a");
      else if (auto pair = compare_pair(record, partner->second))
        compared.push_back(*pair);
      if (callbacks_.progress) callbacks_.progress(++done, a_.samples.size());
    }
    for (const auto& [index, record] : b_.samples)
      if (!a_.samples.contains(index)) leave_out(index, "only in b");
    tell(compared.empty());
    return compared;
  }

  OrderedJson left_out() const {
    auto list = OrderedJson::array();
    for (const auto& [why, indices] : left_out_)
      for (const std::int64_t index : indices) list.push_back({{"index", index}, {"reason", why}});
    return list;
  }

 private:
  std::optional<Compared> compare_pair(const SampleRecord& a, const SampleRecord& b) {
    const Trajectory from_a(sample_path(a_.folder, a.index), shape_of(a_.info));
    const Trajectory from_b(sample_path(b_.folder, b.index), shape_of(b_.info));
    if (!std::ranges::equal(from_a.prompt(), from_b.prompt())) {
      leave_out(a.index, "different prompts");
      return std::nullopt;
    }
    Compared compared{a.index, compare_samples(from_a, from_b, a_.info.model.mask_id), std::nullopt};
    if (a.reference && b.reference && *a.reference != *b.reference)
      other_references_.push_back(a.index);
    else if (a.reference && b.reference)
      compared.match = {matches(a), matches(b)};
    return compared;
  }

  void leave_out(std::int64_t index, const char* why) { left_out_[why].push_back(index); }

  void tell(bool all) const {
    std::string reasons;
    for (const auto& [why, indices] : left_out_)
      reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", why, list_of(indices));
    if (all)
      throw Error("{} and {} have no sample of the same index and prompt ({})", a_.folder.string(),
                  b_.folder.string(), reasons);
    if (!reasons.empty() && callbacks_.note) callbacks_.note("samples left out: " + reasons);
    if (!other_references_.empty() && callbacks_.note)
      callbacks_.note("samples without an exact match, for the runs have different references: " +
                      list_of(other_references_));
  }

  // "3, 4, 9", or the first ten "and 20 more".
  static std::string list_of(const std::vector<std::int64_t>& indices) {
    constexpr std::size_t most = 10;
    const std::size_t shown = std::min(indices.size(), most);
    std::string text = fmt::format("{}", fmt::join(indices.begin(), indices.begin() + shown, ", "));
    if (indices.size() > shown) text += fmt::format(" and {} more", indices.size() - shown);
    return text;
  }

  const Run& a_;
  const Run& b_;
  const CompareCallbacks& callbacks_;
  std::map<std::string, std::vector<std::int64_t>> left_out_;
  std::vector<std::int64_t> other_references_;
};

OrderedJson change_json(const std::optional<ConfidenceChange>& change) {
  if (!change) return nullptr;
  const std::uint64_t n = change->candidates;
  return {{"candidates", n},
          {"mean_a", quotient(change->sum_a, n)},
          {"mean_b", quotient(change->sum_b, n)},
          {"mean_change", quotient(change->sum_b - change->sum_a, n)},
          {"mean_absolute", quotient(change->absolute, n)},
          {"largest", n == 0 ? OrderedJson(nullptr) : OrderedJson(change->largest)}};
}

OrderedJson keys_masked_json(const std::optional<ConfidenceChange>& change, std::size_t steps,
                             std::uint64_t keys) {
  if (!change) return nullptr;
  OrderedJson json{{"steps", steps}, {"masked_keys", keys}};
  json.update(change_json(change));
  return json;
}

OrderedJson sample_json(const Compared& compared, bool autoregressive) {
  const SamplePair& pair = compared.pair;
  OrderedJson match = nullptr;
  if (compared.match) match = {{"a", compared.match->a}, {"b", compared.match->b}};
  OrderedJson tokens = nullptr;
  if (autoregressive) tokens = {{"a", pair.tokens_a}, {"b", pair.tokens_b}};
  return {{"index", compared.index},
          {"steps", {{"a", pair.steps_a}, {"b", pair.steps_b}}},
          {"tokens", tokens},
          {"outputs_equal", pair.outputs_equal()},
          {"positions", pair.tokens()},
          {"equal", pair.equal},
          {"share_equal", quotient(static_cast<double>(pair.equal), pair.tokens())},
          {"first_difference", or_null(pair.first_difference)},
          {"parts_at", or_null(pair.parts_at)},
          {"kendall_tau", or_null(pair.kendall_tau)},
          {"confidence",
           {{"before_parting", change_json(pair.before_parting)},
            {"all_steps", change_json(pair.all_steps)},
            {"keys_masked", keys_masked_json(pair.keys_masked, pair.steps_masked, pair.masked_keys)}}},
          {"effect", {{"a", effect_json(pair.effect_a)}, {"b", effect_json(pair.effect_b)}}},
          {"exact_match", match}};
}

// A mean over the samples that have the quantity.
struct Mean {
  double sum = 0;
  std::uint64_t samples = 0;

  template <typename Value>
  void add(const std::optional<Value>& value) {
    if (!value) return;
    sum += static_cast<double>(*value);
    ++samples;
  }
  OrderedJson value() const { return quotient(sum, samples); }
};

// Sums over samples where at least one has them.
void add(std::optional<ConfidenceChange>& sums, const std::optional<ConfidenceChange>& change) {
  if (!change) return;
  if (!sums) sums.emplace();
  sums->add(*change);
}

OrderedJson interval_json(const std::vector<double>& a, const std::vector<double>& b,
                          const CompareOptions& options) {
  const std::optional<Interval> interval = paired_bootstrap(a, b, options.resamples, options.seed);
  return interval ? OrderedJson{interval->low, interval->high} : OrderedJson(nullptr);
}

class Pool {
 public:
  void add_sample(const Compared& compared) {
    const SamplePair& pair = compared.pair;
    ++samples_;
    outputs_equal_ += pair.outputs_equal() ? 1 : 0;
    positions_ += pair.tokens();
    equal_ += pair.equal;
    parts_at_.add(pair.parts_at);
    tau_.add(pair.kendall_tau);
    first_difference_.add(pair.first_difference);
    add(before_parting_, pair.before_parting);
    add(all_steps_, pair.all_steps);
    add(keys_masked_, pair.keys_masked);
    steps_masked_ += pair.steps_masked;
    masked_keys_ += pair.masked_keys;
    sinkscope::add(effect_a_, pair.effect_a);
    sinkscope::add(effect_b_, pair.effect_b);
    if (pair.keys_masked && pair.keys_masked->candidates > 0) {
      const auto n = static_cast<double>(pair.keys_masked->candidates);
      confidence_a_.push_back(pair.keys_masked->sum_a / n);
      confidence_b_.push_back(pair.keys_masked->sum_b / n);
    }
    if (!compared.match) return;
    match_a_.push_back(compared.match->a ? 1 : 0);
    match_b_.push_back(compared.match->b ? 1 : 0);
  }

  OrderedJson json(bool autoregressive, const CompareOptions& options) const {
    OrderedJson keys = keys_masked_json(keys_masked_, steps_masked_, masked_keys_);
    if (!keys.is_null()) {
      Mean change;
      for (std::size_t i = 0; i < confidence_a_.size(); ++i)
        change.add(std::optional(confidence_b_[i] - confidence_a_[i]));
      keys["samples"] = change.samples;
      keys["mean_change_of_samples"] = change.value();
      keys["interval"] = interval_json(confidence_a_, confidence_b_, options);
    }
    return {{"samples", samples_},
            {"outputs_equal", outputs_equal_},
            {"positions", positions_},
            {"equal", equal_},
            {"share_equal", quotient(static_cast<double>(equal_), positions_)},
            {"mean_first_difference", first_difference_.value()},
            {"parted", autoregressive ? OrderedJson(nullptr) : OrderedJson(parts_at_.samples)},
            {"mean_parts_at", parts_at_.value()},
            {"kendall_tau", tau_.value()},
            {"kendall_tau_samples", autoregressive ? OrderedJson(nullptr) : OrderedJson(tau_.samples)},
            {"confidence",
             {{"before_parting", change_json(before_parting_)},
              {"all_steps", change_json(all_steps_)},
              {"keys_masked", keys}}},
            {"effect", {{"a", effect_json(effect_a_)}, {"b", effect_json(effect_b_)}}},
            {"exact_match", match_json(options)}};
  }

 private:
  static OrderedJson score_json(const std::vector<double>& scores) {
    const auto right = static_cast<std::uint64_t>(std::count(scores.begin(), scores.end(), 1.0));
    return {{"right", right},
            {"share", quotient(static_cast<double>(right), scores.size())},
            {"standard_error", or_null(binomial_standard_error(right, scores.size()))}};
  }

  OrderedJson match_json(const CompareOptions& options) const {
    if (match_a_.empty()) return nullptr;
    std::uint64_t only_a = 0, only_b = 0;
    for (std::size_t i = 0; i < match_a_.size(); ++i) {
      only_a += match_a_[i] > match_b_[i] ? 1 : 0;
      only_b += match_b_[i] > match_a_[i] ? 1 : 0;
    }
    return {
        {"samples", match_a_.size()},
        {"a", score_json(match_a_)},
        {"b", score_json(match_b_)},
        {"only_a", only_a},
        {"only_b", only_b},
        {"difference", quotient(static_cast<double>(only_b) - static_cast<double>(only_a), match_a_.size())},
        {"interval", interval_json(match_a_, match_b_, options)},
        {"mcnemar_p", mcnemar_p(only_a, only_b)}};
  }

  std::uint64_t samples_ = 0, outputs_equal_ = 0, positions_ = 0, equal_ = 0;
  Mean parts_at_, tau_, first_difference_;
  std::optional<ConfidenceChange> before_parting_, all_steps_, keys_masked_;
  std::size_t steps_masked_ = 0;
  std::uint64_t masked_keys_ = 0;
  EffectSums effect_a_, effect_b_;
  std::vector<double> confidence_a_, confidence_b_;  // of each sample, where b masked keys
  std::vector<double> match_a_, match_b_;            // 0 or 1, of each sample with a reference
};

OrderedJson run_json(const Run& run) {
  return {{"run", run.folder.string()},
          {"model", run.info.model.name},
          {"intervention", intervention_json(run.info)},
          {"samples", run.samples.size()}};
}

}  // namespace

OrderedJson compare_runs(const fs::path& a, const fs::path& b, const CompareOptions& options,
                         const CompareCallbacks& callbacks) {
  const Run run_a = open_run(a, callbacks), run_b = open_run(b, callbacks);
  check_kinds(run_a, run_b, callbacks);
  const bool autoregressive = !run_a.info.model.mask_id;
  Pairing pairing(run_a, run_b, callbacks);
  Pool pool;
  auto samples = OrderedJson::array();
  for (const Compared& compared : pairing.compare()) {
    pool.add_sample(compared);
    samples.push_back(sample_json(compared, autoregressive));
  }
  return {{"format", 1},
          {"version", SINKSCOPE_VERSION},
          {"command", "compare"},
          {"kind", kind_of(run_a)},
          {"a", run_json(run_a)},
          {"b", run_json(run_b)},
          {"resamples", options.resamples},
          {"seed", options.seed},
          {"pooled", pool.json(autoregressive, options)},
          {"left_out", pairing.left_out()},
          {"samples", std::move(samples)}};
}

CsvTable compared_samples(const OrderedJson& compared) {
  // Columns are places in a sample's object, joined with _.
  std::vector<std::string> places{"index",       "steps/a",          "steps/b",   "tokens/a",
                                  "tokens/b",    "outputs_equal",    "positions", "equal",
                                  "share_equal", "first_difference", "parts_at",  "kendall_tau"};
  for (const char* part : {"before_parting", "all_steps", "keys_masked"}) {
    const std::string where = std::string("confidence/") + part + "/";
    if (where.find("keys_masked") != std::string::npos)
      for (const char* name : {"steps", "masked_keys"}) places.push_back(where + name);
    for (const char* name : {"candidates", "mean_a", "mean_b", "mean_change", "mean_absolute", "largest"})
      places.push_back(where + name);
  }
  for (const std::string run : {"effect/a/", "effect/b/"}) {
    places.push_back(run + "steps");
    for (const char* name : effect_numbers) places.push_back(run + name);
  }
  for (const char* place : {"exact_match/a", "exact_match/b"}) places.emplace_back(place);
  std::vector<OrderedJson> head{"run_a", "run_b"};
  for (std::string name : places) {
    std::replace(name.begin(), name.end(), '/', '_');
    head.emplace_back(name);
  }
  CsvTable table{"samples.csv", csv_line(head)};
  for (const OrderedJson& sample : compared.at("samples")) {
    std::vector<OrderedJson> fields{compared.at("a").at("run"), compared.at("b").at("run")};
    for (const std::string& place : places) {
      const OrderedJson::json_pointer where("/" + place);
      fields.push_back(sample.contains(where) ? sample.at(where) : OrderedJson(nullptr));
    }
    table.content += csv_line(fields);
  }
  return table;
}

}  // namespace sinkscope
