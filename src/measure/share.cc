#include "measure/share.h"

#include <algorithm>
#include <numeric>

#include "sinks/ranking.h"

namespace sinkscope {
namespace {

void add_map(ShareSums& sums, std::span<const float> columns, const DetectionOptions& options) {
  if (options.rule != SinkRule::topk)
    for (const double margin : sink_margins(columns, options)) sums.margins.add(margin);
  if (options.rule == SinkRule::soft) {
    const std::vector<double> phi = soft_memberships(columns, options);
    sums.membership = std::accumulate(phi.begin(), phi.end(), sums.membership);
  }
}

}  // namespace

void add_step(ShareSums& sums, const Step& step, const DetectionOptions& options) {
  const double factor = scale_factor(options.scale, step.shape.positions);
  sums.layer_sinks.resize(step.shape.layers);
  sums.top_sink.resize(step.shape.maps());
  sums.top_steps.resize(step.shape.maps());
  sums.largest_column.resize(step.shape.maps());
  ++sums.steps;
  sums.cells += step.columns.size();
  for (std::size_t map = 0; map < step.shape.maps(); ++map) {
    const std::span<const float> columns = step.columns_of(map);
    add_map(sums, columns, options);
    sums.sinks += step.sinks[map].size();
    sums.layer_sinks[map / step.shape.heads] += step.sinks[map].size();
    sums.largest_column[map] += factor * *std::max_element(columns.begin(), columns.end());
    if (step.largest[map] < 0) continue;
    sums.top_sink[map] += factor * columns[step.largest[map]];
    ++sums.top_steps[map];
  }
}

}  // namespace sinkscope
