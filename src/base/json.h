// JSON from files that may be hostile: nlohmann::json with errors that name the place.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sinkscope {

using Json = nlohmann::json;

/// Parses one JSON value. `where` names the text in the error ("DIR/config.json", "FILE line 3"). Duplicate
/// keys in one object, which the library would silently collapse, throw Error too.
Json parse_json(std::string_view text, const std::string& where);

/// read_file + parse_json.
Json read_json_file(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 30);

/// A short name of a value's type for messages: "a string", "an array", "null", ...
std::string json_type_name(const Json& value);

/// One line, keys in insertion order are the caller's choice (use nlohmann::ordered_json); invalid UTF-8 is
/// replaced by U+FFFD instead of throwing.
template <typename BasicJson>
std::string json_line(const BasicJson& value) {
  return value.dump(-1, ' ', false, BasicJson::error_handler_t::replace);
}

/// A file of it for people: indented, with a newline at its end; invalid UTF-8 as in json_line().
template <typename BasicJson>
std::string json_text(const BasicJson& value, int indent = 1) {
  return value.dump(indent, ' ', false, BasicJson::error_handler_t::replace) + "\n";
}

}  // namespace sinkscope
