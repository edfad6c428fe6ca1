// Split sinks: masked queries and the others look at different keys (sinks.md 5.3).
#pragma once

#include <cstdint>
#include <vector>

#include "measure/step.h"

namespace sinkscope {

struct SplitSink {
  std::size_t run = 0;      ///< among the runs given
  std::int64_t sample = 0;  ///< its `index`
  std::size_t step = 0, layer = 0, head = 0;
  int masked = 0;    ///< the largest sink of the masked queries
  int unmasked = 0;  ///< that of prompt and decoded queries together
};

struct SplitSums {
  std::uint64_t maps = 0;       ///< with queries of both kinds
  std::uint64_t splits = 0;     ///< of these, with a split sink
  std::vector<SplitSink> list;  ///< the first ones, in the order of runs, samples, steps, layers, heads
};

/// A long run has millions; so many are kept by name.
constexpr std::size_t most_listed_splits = 10000;

/// `place` has the run and the sample.
void add_step(SplitSums& sums, const Step& step, const DetectionOptions& options, const SplitSink& place);

void add(SplitSums& sums, const SplitSums& other);

}  // namespace sinkscope
