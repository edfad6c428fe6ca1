#include "base/folder_lock.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <sys/file.h>

#include <cerrno>
#include <cstring>

namespace sinkscope {

FolderLock::FolderLock(const std::filesystem::path& folder)
    : folder_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (folder_.number() < 0)
    throw Error("cannot open the folder {}: {}", folder.string(), std::strerror(errno));
  if (::flock(folder_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw UsageError("another process is writing {}; wait until it has ended, or stop it", folder.string());
}

}  // namespace sinkscope
