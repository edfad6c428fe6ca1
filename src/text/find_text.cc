#include "text/find_text.h"

#include <cstring>

namespace sinkscope {

std::size_t find_text(std::string_view text, std::string_view needle, std::size_t from) {
  if (from > text.size()) return std::string_view::npos;
  const std::string_view rest = text.substr(from);
  const void* found = memmem(rest.data(), rest.size(), needle.data(), needle.size());
  return found == nullptr ? std::string_view::npos
                          : static_cast<std::size_t>(static_cast<const char*>(found) - text.data());
}

}  // namespace sinkscope
