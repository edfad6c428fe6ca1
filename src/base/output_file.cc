#include "base/output_file.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sinkscope {

void fail_to_write(const std::string& name) {
  throw Error("cannot write {}: {}", name, std::strerror(errno));
}

OutputFile::OutputFile(const std::filesystem::path& path, int flags, std::string name)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)), name_(std::move(name)) {
  if (fd_ < 0) fail_to_write(name_);
}

OutputFile::~OutputFile() {
  if (fd_ >= 0) ::close(fd_);
}

void OutputFile::write(std::span<const std::byte> bytes) {
  constexpr std::size_t most_at_once = std::size_t{1} << 30;  // Linux writes no more than 2 GiB per call
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), most_at_once));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_to_write(name_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void OutputFile::sync() {
  if (::fsync(fd_) != 0) fail_to_write(name_);
}

void OutputFile::close() {
  // Linux releases the descriptor even where close is interrupted.
  if (::close(std::exchange(fd_, -1)) != 0 && errno != EINTR) fail_to_write(name_);
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path& path = folder.empty() ? "." : folder;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // a folder that may be written but not listed
  const int status = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  errno = error;
  // Some file systems do not know how to flush a folder.
  if (status != 0 && error != EINVAL && error != EBADF) fail_to_write(path.string());
}

}  // namespace sinkscope
