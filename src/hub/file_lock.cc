#include "hub/file_lock.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/files.h"

namespace sinkscope {
namespace {

constexpr mode_t lock_mode = 0664;  // several users may share a cache

// Some versions of the lock library that huggingface_hub uses remove the file as they release it; a lock on a
// file without a name locks nobody out.
bool is_still_at(int fd, const std::filesystem::path& path) {
  struct stat ours {};
  struct stat named {};
  return ::fstat(fd, &ours) == 0 && ::stat(path.c_str(), &named) == 0 && ours.st_ino == named.st_ino &&
         ours.st_dev == named.st_dev;
}

}  // namespace

FileLock::FileLock(std::filesystem::path path) : path_(std::move(path)) {
  make_folders(path_.parent_path());
  open();
}

FileLock::~FileLock() {
  if (fd_ >= 0) ::close(fd_);
}

void FileLock::open() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, lock_mode);
  if (fd_ < 0) throw Error("cannot open {}: {}", path_.string(), std::strerror(errno));
}

bool FileLock::try_lock() {
  while (true) {
    int status = 0;
    do {
      status = ::flock(fd_, LOCK_EX | LOCK_NB);
    } while (status != 0 && errno == EINTR);
    if (status != 0 && errno == EWOULDBLOCK) return false;
    if (status != 0)
      throw Error("cannot lock {}: {}; HF_HUB_CACHE may name a folder on a file system with locks",
                  path_.string(), std::strerror(errno));
    if (is_still_at(fd_, path_)) return true;
    open();
  }
}

}  // namespace sinkscope
