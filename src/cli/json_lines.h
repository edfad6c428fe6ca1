// Lines of a JSON Lines file, and of standard input.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sinkscope {

/// Calls body(line, "FILE line N") for each line that is not blank; "-" is standard input. Throws Error
/// naming the file that cannot be opened or read.
void for_each_line(const std::string& file,
                   const std::function<void(const std::string& line, const std::string& where)>& body);

/// The lines that are not blank, each a JSON object. Throws Error naming file and line.
std::vector<nlohmann::ordered_json> read_objects(const std::string& file);

/// `text` of a line that is a JSON object. Throws Error naming the line (`where`) that has none.
std::string text_of_line(const std::string& line, const std::string& where);

/// One line on standard output. Throws Error when it cannot be written.
void print_line(const std::string& line);

}  // namespace sinkscope
