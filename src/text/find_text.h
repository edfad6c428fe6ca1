// Searching for a text in another in linear time.
#pragma once

#include <cstddef>
#include <string_view>

namespace sinkscope {

/// Position of needle in text at or after `from`, npos if none. Unlike std::string_view::find, which compares
/// anew at every place, this takes linear time whatever the two hold.
std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from = 0);

}  // namespace sinkscope
