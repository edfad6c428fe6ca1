// Texts cut into lines, and lists into their entries.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace sinkscope {

/// Without their \n or \r\n; what follows the last line end is a line where it is not empty.
std::vector<std::string_view> lines_of(std::string_view content);

/// Whether there is nothing but spaces, tabs and carriage returns.
bool is_blank(std::string_view line);

/// What stands between the commas, empty entries included: one more than there are commas.
std::vector<std::string_view> comma_parts(std::string_view text);

/// At most so many bytes of the text's beginning, without halving a UTF-8 sequence.
std::string_view utf8_prefix(std::string_view text, std::size_t most);

/// Whether a file or folder can be called so and be found again: no path, not hidden, no control characters,
/// at most 200 bytes.
bool is_file_name(std::string_view name);

}  // namespace sinkscope
