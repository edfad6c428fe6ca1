// How many sinks there are and how large: shares, layers, heads (sinks.md 5.1).
#pragma once

#include <cstdint>
#include <vector>

#include "measure/step.h"
#include "measure/sweep.h"

namespace sinkscope {

/// Sums over all steps of all samples. A cell is one (step, layer, head, key).
struct ShareSums {
  explicit ShareSums(const DetectionOptions& options) : margins(sweep_grid(options)) {}

  std::uint64_t cells = 0;
  std::uint64_t sinks = 0;
  double membership = 0;  ///< rule soft
  MarginCounts margins;
  std::uint64_t steps = 0;
  std::vector<std::uint64_t> layer_sinks;  ///< [L]
  std::vector<double> top_sink;            ///< [L H] sum of the largest sink's C, on the scale
  std::vector<std::uint64_t> top_steps;    ///< [L H] steps in which there was one
  std::vector<double> largest_column;      ///< [L H] sum of max C, sink or not, on the scale
};

void add_step(ShareSums& sums, const Step& step, const DetectionOptions& options);

}  // namespace sinkscope
