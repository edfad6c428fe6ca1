#include "sinks/ranking.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sinkscope {
double scale_factor(SinkScale scale, std::size_t positions) {
  switch (scale) {
    case SinkScale::sum:
      return 1;
    case SinkScale::mean:
      return 1 / static_cast<double>(positions);
    case SinkScale::percent:
      return 100 / static_cast<double>(positions);
  }
  throw Error("unknown sink scale {}", static_cast<int>(scale));
}

std::vector<double> scores_of(std::span<const float> columns, std::span<const float> diagonal) {
  std::vector<double> scores(columns.begin(), columns.end());
  for (std::size_t j = 0; j < diagonal.size(); ++j) scores[j] -= static_cast<double>(diagonal[j]);
  for (std::size_t j = 0; j < scores.size(); ++j)
    if (!std::isfinite(scores[j]))
      throw Error("the attention score of key {} is {}; only finite column sums can be ranked", j, scores[j]);
  return scores;
}

// The product is rounded: 0.07 * 100 is slightly above 7 and must still give 7.
std::size_t share_of(std::size_t count, double ratio) {
  constexpr double just_below_one = 1 - 1e-12;
  return static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(count) * just_below_one));
}

std::vector<int> all_positions(std::size_t count) {
  std::vector<int> positions(count);
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

Spread spread_of(std::span<const double> scores) {
  const auto count = static_cast<double>(scores.size());
  Spread spread;
  spread.mean = std::accumulate(scores.begin(), scores.end(), 0.0) / count;
  double squares = 0;
  for (const double score : scores) squares += (score - spread.mean) * (score - spread.mean);
  spread.deviation = std::sqrt(squares / count);
  return spread;
}

Comparison compare(std::span<const double> scores, const DetectionOptions& options) {
  Comparison comparison;
  if (scores.empty() || (scores.size() < 2 && options.rule != SinkRule::visible)) return comparison;
  const std::size_t count = scores.size();
  const double factor = scale_factor(options.scale, count);
  comparison.values.assign(scores.begin(), scores.end());
  if (options.rule == SinkRule::visible) {
    for (std::size_t k = 0; k < count; ++k)
      comparison.values[k] /= static_cast<double>(options.causal ? count - k : count);
    comparison.bases.assign(count, 0);
    return comparison;
  }
  for (double& value : comparison.values) value *= factor;
  if (options.rule == SinkRule::paper) {
    const double total = std::accumulate(scores.begin(), scores.end(), 0.0);
    for (const double score : scores)
      comparison.bases.push_back(factor * ((total - score) / static_cast<double>(count - 1)));
    return comparison;
  }
  const Spread spread = spread_of(comparison.values);
  comparison.bases.assign(count, spread.mean);
  comparison.unit = spread.deviation;
  return comparison;
}

std::vector<int> above_thresholds(const Comparison& comparison, double threshold) {
  std::vector<int> found;
  for (std::size_t j = 0; j < comparison.values.size(); ++j) {
    const double value = comparison.values[j];
    const double limit = comparison.bases[j] + threshold * comparison.unit;
    if (value - limit > rounding_guard * std::max(value, limit)) found.push_back(static_cast<int>(j));
  }
  return found;
}

std::vector<int> largest(std::span<const double> scores, std::vector<int> candidates, int count) {
  const auto kept = std::min(candidates.size(), static_cast<std::size_t>(std::max(count, 0)));
  const auto middle = candidates.begin() + static_cast<std::ptrdiff_t>(kept);
  std::partial_sort(candidates.begin(), middle, candidates.end(), [&](int a, int b) {
    if (scores[a] != scores[b]) return scores[a] > scores[b];
    return a < b;
  });
  candidates.resize(kept);
  return candidates;
}

}  // namespace sinkscope
