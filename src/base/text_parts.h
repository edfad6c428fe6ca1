// Texts cut into lines, and lists into their entries.
#pragma once

#include <string_view>
#include <vector>

namespace sinkscope {

/// Without their \n or \r\n; what follows the last line end is a line where it is not empty.
std::vector<std::string_view> lines_of(std::string_view content);

/// Whether there is nothing but spaces, tabs and carriage returns.
bool is_blank(std::string_view line);

/// What stands between the commas, empty entries included: one more than there are commas.
std::vector<std::string_view> comma_parts(std::string_view text);

}  // namespace sinkscope
