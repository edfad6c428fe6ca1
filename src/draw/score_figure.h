// Task scores of several evaluations as bars: what interventions cost.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draw/figure.h"

namespace sinkscope {

struct TaskScore {
  std::string metric;  ///< "exact_match,flexible-extract"
  double value = 0;
  std::optional<double> standard_error;
};

struct TaskScores {
  std::string label;
  std::filesystem::path file;
  std::vector<std::pair<std::string, TaskScore>> tasks;  ///< in the file's order
};

/// Of a results.json in the layout of lm-evaluation-harness: `results` {task: {"METRIC,FILTER": number,
/// "METRIC_stderr,FILTER": number}}. Of a task with several metrics it is exact_match,flexible-extract, else
/// the first with a standard error, else the first; with `metric` that one, and tasks without it are left
/// out. Throws Error naming the file and what is wrong; UsageError where no task has `metric`, naming those
/// there are.
TaskScores read_task_scores(const std::filesystem::path& file, const std::optional<std::string>& metric);

/// Of all cells of an evaluation (its folder, which has eval.json), in the order of the grid; those that have
/// not ended are left out. Throws Error as above, and where no cell has ended.
std::vector<TaskScores> read_cell_scores(const std::filesystem::path& folder,
                                         const std::optional<std::string>& metric);

/// A group of bars for each task, in it a bar with its standard error for each evaluation.
Figure score_figure(const std::vector<TaskScores>& evaluations);

}  // namespace sinkscope
