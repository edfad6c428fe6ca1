#include "measure/autoregressive.h"

#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr double percent = 100;

// Throws when a value is not finite or there are not `size` of them.
template <typename Value>
void check(const char* what, const std::vector<Value>& values, std::size_t size) {
  if (values.size() != size)
    throw Error("{} of a sample are {} numbers; {} would be right", what, values.size(), size);
  for (const Value value : values)
    if (!std::isfinite(value)) throw Error("{} of a sample hold a number that is not finite", what);
}

void add(std::vector<double>& sums, std::span<const double> values) {
  sums.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) sums[i] += values[i];
}

// What stands at `position` over the mean of the others, of each row of T. A row of nothing else than zeros
// has no such ratio; it counts as 0.
void add_row_ratios(std::vector<double>& sums, const std::vector<double>& rows, std::size_t positions,
                    std::size_t position) {
  sums.resize(rows.size() / positions);
  for (std::size_t r = 0; r < sums.size(); ++r) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(r * positions);
    const double own = row[static_cast<std::ptrdiff_t>(position)];
    const double all = std::accumulate(row, row + static_cast<std::ptrdiff_t>(positions), 0.0);
    const double others = (all - own) / static_cast<double>(positions - 1);
    sums[r] += others > 0 ? own / others : 0;
  }
}

// values[rows][columns] / by, nested.
OrderedJson rows_of(const std::vector<double>& values, std::size_t rows, double by) {
  const std::size_t columns = values.size() / rows;
  OrderedJson result = OrderedJson::array();
  for (std::size_t r = 0; r < rows; ++r) {
    OrderedJson row = OrderedJson::array();
    for (std::size_t c = 0; c < columns; ++c) row.push_back(values[r * columns + c] / by);
    result.push_back(std::move(row));
  }
  return result;
}

OrderedJson row_of(const std::vector<double>& values, double by) { return rows_of(values, 1, by).front(); }

struct Spread {
  double mean = 0;
  OrderedJson standard_error;  // null for one value
};

// Of column k of the samples' rows.
Spread spread_of(const std::vector<std::vector<double>>& samples, std::size_t k) {
  const auto count = static_cast<double>(samples.size());
  Spread spread;
  for (const std::vector<double>& sample : samples) spread.mean += sample[k];
  spread.mean /= count;
  if (samples.size() < 2) return spread;
  double squares = 0;
  for (const std::vector<double>& sample : samples)
    squares += (sample[k] - spread.mean) * (sample[k] - spread.mean);
  spread.standard_error = std::sqrt(squares / (count - 1) / count);
  return spread;
}

// Means over the (query, key) pairs of one layer and head, those with the key at `position` and all others.
struct PairMeans {
  double own = 0, others = 0;
};

PairMeans pair_means(std::span<const double> sums, const std::vector<QueriesOfKey>& queries,
                     std::size_t position, double samples) {
  double other_sum = 0, other_pairs = 0;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    if (k == position) continue;
    other_sum += sums[k];
    other_pairs += static_cast<double>(queries[k].last - queries[k].first);
  }
  const auto own_pairs = static_cast<double>(queries[position].last - queries[position].first);
  return {sums[position] / own_pairs / samples, other_sum / other_pairs / samples};
}

// {`name`: [L][H], `other_name`: [L][H]}
void put_pair_means(OrderedJson& to, const std::string& name, const std::vector<double>& sums,
                    const AutoregressiveMeasure& measure, double samples) {
  const AutoregressiveShape& shape = measure.shape;
  OrderedJson own = OrderedJson::array(), others = OrderedJson::array();
  for (std::size_t l = 0; l < shape.layers; ++l) {
    OrderedJson own_row = OrderedJson::array(), others_row = OrderedJson::array();
    for (std::size_t h = 0; h < shape.heads; ++h) {
      const std::span<const double> head(sums.data() + (l * shape.heads + h) * shape.positions,
                                         shape.positions);
      const PairMeans means = pair_means(head, measure.queries[l], measure.position, samples);
      own_row.push_back(means.own);
      others_row.push_back(means.others);
    }
    own.push_back(std::move(own_row));
    others.push_back(std::move(others_row));
  }
  to[name] = std::move(own);
  to["other_" + name] = std::move(others);
}

}  // namespace

QueriesOfKey queries_of_key(std::int64_t k, std::int64_t positions, std::int64_t window,
                            std::int64_t prefix) {
  if (k < prefix) return {0, positions};
  return {k, window > 0 ? std::min(positions, k + window) : positions};
}

void AutoregressiveSums::add(const AutoregressiveSample& sample) {
  const auto& [layers, heads, positions] = measure_.shape;
  check("column sums", sample.columns, layers * heads * positions);
  check("norms of hidden states", sample.hidden_norm, (layers + 1) * positions);
  check("norms of keys", sample.key_norm, layers * positions);
  check("norms of values", sample.value_norm, layers * positions);
  check("products of norms", sample.norm_product, layers * heads * positions);
  check("cosines", sample.cosine, layers * heads * positions);
  add_columns(sample);
  add_ratios(sample);
  sinkscope::add(hidden_norm_, sample.hidden_norm);
  sinkscope::add(key_norm_, sample.key_norm);
  sinkscope::add(value_norm_, sample.value_norm);
  sinkscope::add(norm_product_, sample.norm_product);
  sinkscope::add(cosine_, sample.cosine);
}

void AutoregressiveSums::add_columns(const AutoregressiveSample& sample) {
  const auto& [layers, heads, positions] = measure_.shape;
  DetectionOptions detection = default_detection(SinkRule::visible);
  detection.epsilon = measure_.epsilon;
  detection.causal = true;
  std::vector<double> counts(positions);
  std::vector<double> alpha;
  sinks_.resize(layers * heads);
  for (std::size_t map = 0; map < layers * heads; ++map) {
    const std::span<const float> columns(sample.columns.data() + map * positions, positions);
    for (const int key : detect_sinks(columns, detection)) {
      counts[static_cast<std::size_t>(key)] += 1;
      if (static_cast<std::size_t>(key) == measure_.position) sinks_[map] += 1;
    }
    const std::vector<double> means = visible_means(columns, true);
    alpha.insert(alpha.end(), means.begin(), means.end());
    if (!measure_.slot) continue;
    // What the rows lack of 1 went to the slot, which every query sees.
    const double slot =
        1 - std::accumulate(columns.begin(), columns.end(), 0.0) / static_cast<double>(positions);
    slot_alpha_ += slot;
    slot_sinks_ += slot > measure_.epsilon ? 1 : 0;
  }
  sinkscope::add(alpha_, alpha);
  counts_.push_back(std::move(counts));
}

void AutoregressiveSums::add_ratios(const AutoregressiveSample& sample) {
  const std::size_t positions = measure_.shape.positions;
  add_row_ratios(massive_, sample.hidden_norm, positions, measure_.position);
  add_row_ratios(key_ratio_, sample.key_norm, positions, measure_.position);
  add_row_ratios(value_ratio_, sample.value_norm, positions, measure_.position);
}

OrderedJson AutoregressiveSums::result() const {
  if (counts_.empty()) throw Error("no sample was measured");
  const auto& [layers, heads, positions] = measure_.shape;
  const auto samples = static_cast<double>(counts_.size()), maps = static_cast<double>(layers * heads);
  OrderedJson result;
  result["sinks"] = OrderedJson::array();
  std::vector<double> alpha_of_head(layers * heads);
  for (std::size_t k = 0; k < positions; ++k) {
    double alpha = 0;
    for (std::size_t map = 0; map < layers * heads; ++map) alpha += alpha_[map * positions + k];
    const Spread count = spread_of(counts_, k);
    OrderedJson error = count.standard_error;
    if (!error.is_null()) error = percent * error.get<double>() / maps;
    result["sinks"].push_back({{"position", k},
                               {"sink_rate", percent * count.mean / maps},
                               {"standard_error", std::move(error)},
                               {"alpha", alpha / maps / samples}});
  }
  for (std::size_t map = 0; map < layers * heads; ++map)
    alpha_of_head[map] = alpha_[map * positions + measure_.position];
  result["slot"] = nullptr;
  if (measure_.slot)
    result["slot"] = {{"sink_rate", percent * slot_sinks_ / maps / samples},
                      {"alpha", slot_alpha_ / maps / samples}};
  result["alpha"] = rows_of(alpha_of_head, layers, samples);
  result["sink_rate"] = rows_of(sinks_, layers, samples / percent);
  result["hidden_norm"] = rows_of(hidden_norm_, layers + 1, samples);
  result["key_norm"] = rows_of(key_norm_, layers, samples);
  result["value_norm"] = rows_of(value_norm_, layers, samples);
  result["massive_ratio"] = row_of(massive_, samples);
  result["key_ratio"] = row_of(key_ratio_, samples);
  result["value_ratio"] = row_of(value_ratio_, samples);
  result["query_key"] = nullptr;
  if (!measure_.query_key) return result;
  result["query_key"] = OrderedJson::object();
  put_pair_means(result["query_key"], "cosine", cosine_, measure_, samples);
  put_pair_means(result["query_key"], "norm_product", norm_product_, measure_, samples);
  return result;
}

OrderedJson autoregressive_aggregation() {
  return {
      {"sinks", "mean over layers and heads, then over samples; standard error over samples"},
      {"slot", "mean over layers and heads, then over samples"},
      {"alpha", "mean over samples"},
      {"sink_rate", "percent of samples"},
      {"hidden_norm", "mean over samples"},
      {"key_norm", "mean over samples and key heads"},
      {"value_norm", "mean over samples and key heads"},
      {"massive_ratio", "mean over samples of the norm at the position over the mean of the other positions"},
      {"key_ratio", "mean over samples of the norm at the position over the mean of the other positions"},
      {"value_ratio", "mean over samples of the norm at the position over the mean of the other positions"},
      {"query_key",
       "mean over samples and the queries that see the key; other: over all pairs with other keys"},
  };
}

}  // namespace sinkscope
