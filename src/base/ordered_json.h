// JSON from files that may be hostile, its members in the order in which they stand there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sinkscope {

/// parse_json(), with its errors, but for the order.
nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where);

}  // namespace sinkscope
