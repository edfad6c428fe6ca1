// The arithmetic that detection and intervention share. Scores are column sums in double, on the sum scale.
#pragma once

#include <sinkscope/sinks.h>

#include <cstddef>
#include <span>
#include <vector>

namespace sinkscope {

/// C_j, or C_j - A_jj where a diagonal is given. Throws Error naming the first value that is not finite.
std::vector<double> scores_of(std::span<const float> columns, std::span<const float> diagonal);

/// Mean and population standard deviation.
struct Spread {
  double mean = 0;
  double deviation = 0;
};
Spread spread_of(std::span<const double> scores);

/// What turns a column sum into the scale's unit.
double scale_factor(SinkScale scale, std::size_t positions);

/// ceil(ratio * count).
std::size_t share_of(std::size_t count, double ratio);

/// 0, 1, ..., count - 1.
std::vector<int> all_positions(std::size_t count);

/// A sink has to stand out by more than this share of its value, or the rounding of float32 column sums would
/// make sinks of uniform attention at epsilon = 0.
constexpr double rounding_guard = 1e-6;

/// C_j as the rule compares it with its threshold, and the threshold's part that is not chosen: key j is a
/// sink iff value > base + threshold * unit by more than the guard against rounding, with unit = 1 of
/// rules with an epsilon, std of rules with a z.
struct Comparison {
  std::vector<double> values;  ///< [S]
  std::vector<double> bases;   ///< [S]
  double unit = 1;
};

/// Of every rule but topk, on options.scale. Both vectors are empty where a key has nothing to be compared
/// with.
Comparison compare(std::span<const double> scores, const DetectionOptions& options);

/// The keys, ascending, that are sinks at this epsilon or z.
std::vector<int> above_thresholds(const Comparison& comparison, double threshold);

/// The count candidates with the largest scores, largest first, ties towards the lower index; all where there
/// are fewer.
std::vector<int> largest(std::span<const double> scores, std::vector<int> candidates, int count);

}  // namespace sinkscope
