// What `measure` and `compare` leave in --out.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/progress.h"
#include "measure/csv_tables.h"

namespace sinkscope {

/// Throws UsageError where --out is a file; `content` says what its folder is for.
void check_result_folder(const std::string& out, const char* content);

/// Makes the folder; each file appears whole or not at all.
void write_results(const std::string& out, const std::string& json_name, const nlohmann::ordered_json& json,
                   const std::vector<CsvTable>& tables);

/// "sample 3 of 20"
void show_samples(Progress& bar, std::size_t done, std::size_t all);

}  // namespace sinkscope
