// The arithmetic that detection and intervention share. Scores are column sums in double, on the sum scale.
#pragma once

#include <sinkscope/sinks.h>

#include <cstddef>
#include <span>
#include <vector>

namespace sinkscope {

/// C_j, or C_j - A_jj where a diagonal is given. Throws Error naming the first value that is not finite.
std::vector<double> scores_of(std::span<const float> columns, std::span<const float> diagonal);

/// 0, 1, ..., count - 1.
std::vector<int> all_positions(std::size_t count);

/// Rule paper: the positions, ascending, whose score exceeds the mean of the others by epsilon on that scale.
std::vector<int> above_others(std::span<const double> scores, SinkScale scale, double epsilon);

/// The count candidates with the largest scores, largest first, ties towards the lower index; all where there
/// are fewer.
std::vector<int> largest(std::span<const double> scores, std::vector<int> candidates, int count);

}  // namespace sinkscope
