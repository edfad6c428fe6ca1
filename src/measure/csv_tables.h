// measure.json as tables, and a line of any table.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinkscope {

struct CsvTable {
  std::string file;     ///< summary.csv, tokens.csv, ...
  std::string content;  ///< a line of names, then the rows; RFC 4180 but for its line ends, which are \n
};

/// One row; null is an empty field.
std::string csv_line(const std::vector<nlohmann::ordered_json>& fields);

/// Every row begins with what its number is of: run, model, pooled ("", "model" or "all"), rule, scale,
/// epsilon, z, steepness, top_k, aggregation. What is null in `measured` is an empty field.
std::vector<CsvTable> csv_tables(const nlohmann::ordered_json& measured);

/// The single numbers of one result, by name, in the order of the tables.
std::vector<std::pair<std::string, nlohmann::ordered_json>> summary_of(const nlohmann::ordered_json& result);

}  // namespace sinkscope
