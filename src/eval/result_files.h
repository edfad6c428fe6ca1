// What an evaluation leaves on disk: samples_TASK.jsonl, results.json and eval.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "eval/comparison.h"

namespace sinkscope {

/// CELL/samples_TASK.jsonl
std::filesystem::path samples_path(const std::filesystem::path& cell, const std::string& task);

/// The lines appear whole or not at all.
void write_lines(const std::filesystem::path& path, const std::vector<nlohmann::ordered_json>& lines);

/// Throws Error naming file and line of what write_lines() does not write.
std::vector<nlohmann::ordered_json> read_lines(const std::filesystem::path& path);

/// results.json of a cell: `results` from the lines, then the members of `header` (versions, configs, n-shot,
/// n-samples, config, ...), whose n-samples.TASK.effective becomes the number of problems in the lines.
nlohmann::ordered_json results_json(const CellLines& cell, nlohmann::ordered_json header);

/// results_json() as EVALUATION/CELL/results.json.
void write_cell_results(const std::filesystem::path& evaluation, const CellLines& cell,
                        const nlohmann::ordered_json& header);

/// The commit that the repository around a folder is at, read from its .git; "" where there is none.
std::string commit_of(std::filesystem::path folder);

/// eval.json's table as a CSV file's content.
std::string table_csv(const nlohmann::ordered_json& table);

/// The cells that eval.json lists. Throws Error naming what is missing.
std::vector<Cell> read_cells(const nlohmann::ordered_json& evaluation, const std::string& where);

}  // namespace sinkscope
