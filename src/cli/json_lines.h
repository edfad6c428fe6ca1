// Lines of a JSON Lines file, and of standard input.
#pragma once

#include <functional>
#include <string>

namespace sinkscope {

/// Calls body(line, "FILE line N") for each line that is not blank; "-" is standard input. Throws Error
/// naming the file that cannot be opened or read.
void for_each_line(const std::string& file,
                   const std::function<void(const std::string& line, const std::string& where)>& body);

/// One line on standard output. Throws Error when it cannot be written.
void print_line(const std::string& line);

}  // namespace sinkscope
