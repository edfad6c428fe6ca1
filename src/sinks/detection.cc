// Detection of sinks in the column sums of one attention map.
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "sinks/ranking.h"

namespace sinkscope {

namespace {

void check_number(std::string_view name, double value) {
  if (!(value >= 0) || !std::isfinite(value))
    throw UsageError("{} must be a finite number of at least 0, not {}", name, value);
}

}  // namespace

DetectionOptions default_detection(SinkRule rule) {
  DetectionOptions options;
  options.rule = rule;
  if (rule == SinkRule::visible) options.epsilon = 0.3;
  if (rule == SinkRule::soft) options.z = 2;
  return options;
}

void validate_detection(const DetectionOptions& options) {
  check_number("epsilon", options.epsilon);
  if (options.top_k < 0) throw UsageError("top_k must be at least 0, not {}", options.top_k);
  check_number("z", options.z);
  if (!(options.steepness > 0) || !std::isfinite(options.steepness))
    throw UsageError("steepness must be a finite number above 0, not {}", options.steepness);
}

std::vector<int> detect_sinks(std::span<const float> columns, const DetectionOptions& options) {
  validate_detection(options);
  const std::vector<double> scores = scores_of(columns, {});
  switch (options.rule) {
    case SinkRule::topk: {
      std::vector<int> keys = largest(scores, all_positions(scores.size()), options.top_k);
      std::sort(keys.begin(), keys.end());
      return keys;
    }
    case SinkRule::paper:
    case SinkRule::visible:
      return above_thresholds(compare(scores, options), options.epsilon);
    case SinkRule::zscore:
    case SinkRule::soft:  // sigmoid(x) > 1/2 is x > 0
      return above_thresholds(compare(scores, options), options.z);
  }
  throw Error("unknown sink rule {}", static_cast<int>(options.rule));
}

std::vector<double> sink_margins(std::span<const float> columns, const DetectionOptions& options) {
  validate_detection(options);
  if (options.rule == SinkRule::topk)
    throw UsageError("rule topk has no threshold; paper, visible, zscore and soft have one");
  const Comparison comparison = compare(scores_of(columns, {}), options);
  std::vector<double> margins(columns.size(), -std::numeric_limits<double>::infinity());
  // Above its threshold the value is the larger of the two, so the guard is a share of it alone. A value of 0
  // exceeds nothing, and where all are equal (unit 0) nobody stands out.
  for (std::size_t j = 0; j < comparison.values.size(); ++j)
    if (comparison.unit > 0 && comparison.values[j] > 0)
      margins[j] = (comparison.values[j] * (1 - rounding_guard) - comparison.bases[j]) / comparison.unit;
  return margins;
}

std::vector<double> soft_memberships(std::span<const float> columns, const DetectionOptions& options) {
  validate_detection(options);
  std::vector<double> scores = scores_of(columns, {});
  const double factor = scale_factor(options.scale, std::max<std::size_t>(1, scores.size()));
  for (double& score : scores) score *= factor;
  const Spread spread = scores.empty() ? Spread() : spread_of(scores);
  const double middle = spread.mean + options.z * spread.deviation;
  for (double& score : scores) score = 1 / (1 + std::exp(-options.steepness * (score - middle)));
  return scores;
}

std::vector<double> visible_means(std::span<const float> columns, bool causal) {
  DetectionOptions options = default_detection(SinkRule::visible);
  options.causal = causal;
  return compare(scores_of(columns, {}), options).values;
}

}  // namespace sinkscope
