// eval.json and what the terminal shows of it.
#pragma once

#include <sinkscope/run_directory.h>

#include <cstddef>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "eval/comparison.h"

namespace sinkscope {

nlohmann::ordered_json cell_json(const Cell& cell);

/// Writes eval.json of an evaluation that begins or goes on: `ended` is null and there is no `table` yet.
nlohmann::ordered_json begin_summary(const std::filesystem::path& folder, const RunInfo& info,
                                     const nlohmann::ordered_json& options, const std::vector<Cell>& cells,
                                     const nlohmann::ordered_json& tasks);

/// Adds `table` and `ended` and writes eval.json and eval.csv.
void end_summary(const std::filesystem::path& folder, nlohmann::ordered_json& summary,
                 const std::vector<CellLines>& results, std::size_t resamples);

/// eval.json. Throws Error naming the file and what is missing.
nlohmann::ordered_json read_summary(const std::filesystem::path& file);

/// One table a task, metric and filter: a row for each rank and number of masked keys, beside it the
/// controls.
std::string summary_tables(const nlohmann::ordered_json& summary);

/// "columns-5, gsm8k: exact_match,strict-match 0.732 +- 0.012", of the task scored last.
std::string score_note(const CellLines& cell);

}  // namespace sinkscope
