// Attention maps for tests: made by hand, so that their sinks are known.
#pragma once

#include <cstddef>
#include <vector>

namespace sinkscope::test {

/// Column sums [S] of a bidirectional map in which every query gives each key of `sinks` the share `share`
/// and divides the rest evenly among the other keys.
inline std::vector<float> planted_columns(std::size_t positions, const std::vector<int>& sinks,
                                          double share) {
  const double left = 1 - share * static_cast<double>(sinks.size());
  const double other = left / static_cast<double>(positions - sinks.size());
  std::vector<float> row(positions, static_cast<float>(other));
  for (const int key : sinks) row[key] = static_cast<float>(share);
  std::vector<float> columns(positions, 0);
  for (std::size_t query = 0; query < positions; ++query)
    for (std::size_t key = 0; key < positions; ++key) columns[key] += row[key];
  return columns;
}

}  // namespace sinkscope::test
