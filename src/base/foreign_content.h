// Files that are something else than their name says, told from their first bytes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sinkscope {

/// How many first bytes foreign_content looks at.
inline constexpr std::size_t foreign_content_bytes = 256;

/// Half a sentence for "FILE is ...": a Git LFS pointer, an HTML page, a PyTorch archive or pickle, with what
/// to do about it. None for anything else.
std::optional<std::string> foreign_content(std::string_view first_bytes);

}  // namespace sinkscope
