// A file being written, whose every failure is an Error with the name the user knows it by.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace sinkscope {

/// Throws Error "cannot write NAME: reason", the reason being errno's.
[[noreturn]] void fail_to_write(const std::string& name);

class OutputFile {
 public:
  /// Opens `path` with open(2)'s `flags`, made with mode 0644; `name` stands for it in errors.
  OutputFile(const std::filesystem::path& path, int flags, std::string name);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }

  /// To the disk, not only to the system.
  void sync();

  /// Some file systems report a full disk only here. Without it the destructor closes and keeps silent.
  void close();

 private:
  int fd_;
  std::string name_;
};

/// Flushes a folder, so that a rename in it survives a power failure.
void sync_folder(const std::filesystem::path& folder);

}  // namespace sinkscope
