// What masking sinks costs and what its controls cost, as bars beside each other.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "draw/evaluation_grid.h"
#include "draw/figure.h"

namespace sinkscope {

/// A panel for each task and evaluation, all on one y axis. In it the ranks, in each the numbers of masked
/// keys, in each a bar for the sinks themselves and one for every control, with one standard error to either
/// side; nothing masked is a line with a band of one standard error. Of each task the metric and filter is
/// `metric` ("METRIC,FILTER"), else the first in its evaluation's table. Tasks without it, or of which no
/// cell masks keys, are left out, and `note` is told. Throws UsageError where no row has `metric`, naming
/// those there are.
Figure grid_figure(const std::vector<EvaluationGrid>& grids, const std::optional<std::string>& metric,
                   const std::function<void(const std::string& line)>& note);

}  // namespace sinkscope
