#include "base/new_folder.h"

#include <sinkscope/error.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/files.h"
#include "base/output_file.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// "DIR/" names DIR: the temporary name belongs beside it, not into it.
fs::path without_slash(const fs::path& place) {
  return place.has_filename() || !place.has_parent_path() ? place : place.parent_path();
}

// NAME.PID-N.tmp beside `place`, for the first N that is free.
fs::path make_temporary(const fs::path& place) {
  for (int n = 0;; ++n) {
    fs::path folder = place;
    folder += fmt::format(".{}-{}.tmp", ::getpid(), n);
    if (::mkdir(folder.c_str(), 0777) == 0) return folder;
    if (errno != EEXIST) throw Error("cannot make the folder {}: {}", place.string(), std::strerror(errno));
  }
}

}  // namespace

void refuse_existing(const fs::path& place) {
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(place, ignored)))
    throw Error("{} exists already; give a name that is free", place.string());
}

NewFolder::NewFolder(const fs::path& place) : place_(without_slash(place)) {
  refuse_existing(place_);
  make_folders(place_.parent_path());
  temporary_ = make_temporary(place_);
}

NewFolder::~NewFolder() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove_all(temporary_, ignored);
}

void NewFolder::finish() {
  refuse_existing(place_);  // rename(2) would replace an empty folder
  if (::rename(temporary_.c_str(), place_.c_str()) != 0)
    throw Error("cannot rename {} to {}: {}", temporary_.string(), place_.string(), std::strerror(errno));
  temporary_.clear();
  sync_folder(place_.parent_path());
}

}  // namespace sinkscope
