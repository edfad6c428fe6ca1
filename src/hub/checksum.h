// The two checksums by which the hub names files.
#pragma once

#include <filesystem>
#include <string>

#include "hub/repository.h"

namespace sinkscope {

/// Lower-case hexadecimal. Git's: SHA-1 over "blob SIZE", a zero byte and the content. Throws Error naming a
/// file that cannot be read.
std::string checksum_of_file(const std::filesystem::path& file, ChecksumKind kind);

}  // namespace sinkscope
