// Files packed with gzip.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sinkscope {

/// The content of a gzip file of one or more members. `where` names it. Throws Error when it is broken or
/// unpacks to more than `largest` bytes.
std::string gunzip(std::string_view packed, const std::string& where, std::size_t largest);

}  // namespace sinkscope
