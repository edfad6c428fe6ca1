// Small whole-file helpers with errors that name the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace sinkscope {

/// The whole file as bytes. Throws Error naming the file when it is missing, unreadable or larger than
/// max_bytes.
std::string read_file(const std::filesystem::path& path, std::uintmax_t max_bytes = std::uintmax_t{1} << 30);

/// Makes the folder and those above it where they are missing; nothing for the empty path. Throws Error
/// naming the folder.
void make_folders(const std::filesystem::path& folder);

/// Writes to a temporary name beside path, flushes it to disk and renames it: path holds either its old
/// content or all of the new one. Throws Error naming the file and the system's reason (full disk, no
/// permission, ...).
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

}  // namespace sinkscope
