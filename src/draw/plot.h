// `plot`: what its runs are, which figures they give, and their files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "draw/plot_options.h"

namespace sinkscope {

/// Name and meaning of every figure, in the order in which they are drawn.
struct FigureName {
  std::string_view name, what;
};
std::vector<FigureName> figure_names();

/// Draws the figures of all runs: run directories, folders of training runs (metrics.jsonl), evaluations
/// (results.json or its folder). Everything is read before anything is written. Returns the paths, the
/// picture's, the table's and the description's of each figure. Throws Error naming the folder, file and
/// array at fault, or why a run has no such figure, where it was asked for by name; UsageError for options
/// that do not fit.
std::vector<std::filesystem::path> plot_runs(const PlotOptions& options, const PlotCallbacks& callbacks);

}  // namespace sinkscope
