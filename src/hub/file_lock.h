// The lock that keeps two downloads of one file apart.
#pragma once

#include <filesystem>

namespace sinkscope {

/// flock(2) on a file made for it, as huggingface_hub does: the two respect each other. The system releases
/// it when the process ends, however it ends. The file stays.
class FileLock {
 public:
  /// Makes the file and its folder. Throws Error when it cannot.
  explicit FileLock(std::filesystem::path path);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// False when another process, or another FileLock of this one, has it. Throws Error when the file system
  /// has no locks.
  bool try_lock();

 private:
  void open();

  std::filesystem::path path_;
  int fd_ = -1;
};

}  // namespace sinkscope
