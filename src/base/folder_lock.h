// Keeps two processes from working in one folder at a time.
#pragma once

#include <filesystem>

#include "base/descriptor.h"

namespace sinkscope {

/// flock(2) on the folder itself: it leaves nothing behind, and the system releases it when the process ends,
/// however it ends.
class FolderLock {
 public:
  /// Throws UsageError naming the folder while another process, or another FolderLock of this one, has it,
  /// Error where there is no such folder. Some network file systems have no locks; refusing to work there
  /// would help nobody, and nothing is locked.
  explicit FolderLock(const std::filesystem::path& folder);

 private:
  Descriptor folder_;
};

}  // namespace sinkscope
