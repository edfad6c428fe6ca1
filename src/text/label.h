// Printable names of tokens.
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

/// Bytes as one line that can be read: valid characters as they are, a space as U+2423, `\n` `\t` `\r`, a
/// backslash as
/// `\\`, other control characters as `\x1B`, invisible or unassigned ones as `\u200B`, runs of bytes that
/// form no character as `<F0 9F>`.
std::string printable(std::string_view bytes);

}  // namespace sinkscope
