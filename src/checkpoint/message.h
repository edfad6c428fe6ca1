// Pieces of error messages that quote hostile input: short, one line, valid UTF-8.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"

namespace sinkscope {

/// The text in double quotes, control characters escaped, invalid UTF-8 replaced, cut after some 100 bytes.
std::string in_quotes(std::string_view text);

/// A JSON value for a message: scalars as JSON writes them (cut like in_quotes), containers by their type.
/// Never recurses.
std::string shown(const Json& value);

/// "a, b, c": at most ten of them, then "and N more".
std::string listed(std::span<const std::string> names);

}  // namespace sinkscope
