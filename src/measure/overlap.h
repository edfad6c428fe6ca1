// How much attention sinks take, and how far layers and heads agree on them (sinks.md 5.5).
#pragma once

#include <cstdint>
#include <vector>

#include "measure/step.h"

namespace sinkscope {

/// A mean of Jaccard indices over the pairs of sets that are not both empty.
struct Agreement {
  double sum = 0;
  std::uint64_t pairs = 0;
};

struct OverlapSums {
  std::vector<double> sink_mass;  ///< [L] attention that sinks receive
  std::vector<double> mass;       ///< [L] all attention
  std::vector<Agreement> layers;  ///< [L,L] between the sinks of two layers, each the union over its heads
  std::vector<Agreement> heads;   ///< [L] between two heads of the layer
};

void add_step(OverlapSums& sums, const Step& step);

}  // namespace sinkscope
