// What `compare` shows on a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace sinkscope {

/// The content of compare.json as tables: all samples together, then each of the first ones.
std::string compare_tables(const nlohmann::ordered_json& compared);

}  // namespace sinkscope
