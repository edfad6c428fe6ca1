// The table of an evaluation with a grid of interventions: its eval.json (docs/eval.md).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

/// The score of a cell in a task, by one metric and filter.
struct GridScore {
  std::string task, metric, filter;
  std::int64_t top_k = 0;  ///< keys masked; 0: nothing
  std::string rank;        ///< "" where nothing is masked
  std::string control;     ///< "none": the sinks themselves
  std::int64_t samples = 0;
  double value = 0;
  std::optional<double> standard_error;
};

struct EvaluationGrid {
  std::string label;   ///< the folder's name
  std::string folder;  ///< as it was given
  std::string model;
  std::vector<GridScore> scores;  ///< in the table's order

  /// Whether any cell masks keys.
  bool masks() const;
};

/// Of the folder of an evaluation. An evaluation that has no `table` yet has no scores; rows without a value
/// are left out. Throws Error naming the file, the row and its member at fault, also where two rows are of
/// the same cell, task, metric and filter.
EvaluationGrid read_evaluation_grid(const std::filesystem::path& folder);

}  // namespace sinkscope
