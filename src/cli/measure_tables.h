// What `measure` shows on a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinkscope {

/// Tables of the content of measure.json, runs side by side, each under a line that says how its numbers are
/// pooled.
std::string measure_tables(const nlohmann::ordered_json& measured);

}  // namespace sinkscope
