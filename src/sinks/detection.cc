// Detection of sinks in the column sums of one attention map.
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <cmath>

#include "sinks/ranking.h"

namespace sinkscope {

std::vector<int> detect_sinks(std::span<const float> columns, const DetectionOptions& options) {
  if (!(options.epsilon >= 0) || !std::isfinite(options.epsilon))
    throw UsageError("epsilon must be a finite number of at least 0, not {}", options.epsilon);
  if (options.top_k < 0) throw UsageError("top_k must be at least 0, not {}", options.top_k);
  const std::vector<double> scores = scores_of(columns, {});
  switch (options.rule) {
    case SinkRule::paper:
      return above_others(scores, options.scale, options.epsilon);
    case SinkRule::topk: {
      std::vector<int> keys = largest(scores, all_positions(scores.size()), options.top_k);
      std::sort(keys.begin(), keys.end());
      return keys;
    }
  }
  throw Error("unknown sink rule {}", static_cast<int>(options.rule));
}

}  // namespace sinkscope
