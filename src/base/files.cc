#include "base/files.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/descriptor.h"

namespace sinkscope {
namespace {

void write_all(int fd, std::string_view content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) throw Error("cannot write {}: {}", path.string(), std::strerror(errno));
    content.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) throw Error("cannot open {}: {}", path.string(), std::strerror(errno));
  struct stat status {};
  if (::fstat(file.number(), &status) != 0)
    throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
  // A named pipe among a model's files would be waited for without end; /dev/stdin and its like are meant.
  if (S_ISFIFO(status.st_mode) && !path.string().starts_with("/dev/") && !path.string().starts_with("/proc/"))
    throw Error("{} is a pipe, not a file", path.string());
  if (::fcntl(file.number(), F_SETFL, 0) != 0)
    throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
  if (S_ISDIR(status.st_mode)) throw Error("{} is a directory, not a file", path.string());
  std::string content;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = ::read(file.number(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("cannot read {}: {}", path.string(), std::strerror(errno));
    if (count == 0) return content;
    if (content.size() + static_cast<std::size_t>(count) > max_bytes)
      throw Error("{} is larger than {} bytes, the most that is read here", path.string(), max_bytes);
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

void make_folders(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error("cannot make the folder {}: {}", folder.string(), error.message());
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  try {
    const Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.number() < 0) throw Error("cannot create {}: {}", temporary.string(), std::strerror(errno));
    write_all(file.number(), content, temporary);
    if (::fsync(file.number()) != 0)
      throw Error("cannot flush {}: {}", temporary.string(), std::strerror(errno));
    if (::rename(temporary.c_str(), path.c_str()) != 0)
      throw Error("cannot rename {} to {}: {}", temporary.string(), path.string(), std::strerror(errno));
  } catch (const Error&) {
    ::unlink(temporary.c_str());
    throw;
  }
}

}  // namespace sinkscope
