#include "hub/cache_layout.h"

#include <sinkscope/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "base/files.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

}  // namespace

CacheLayout cache_layout(const fs::path& cache, const HubId& id) {
  const fs::path repository = repository_folder(cache, id);
  return {.repository = repository, .locks = cache / ".locks" / repository.filename()};
}

void link_file(const CacheLayout& layout, const std::string& commit, const std::string& file,
               const std::string& checksum) {
  const fs::path place = layout.snapshot(commit) / file;
  make_folders(place.parent_path());
  fs::path target = "../..";  // from snapshots/COMMIT
  for (auto slashes = std::count(file.begin(), file.end(), '/'); slashes > 0; --slashes) target /= "..";
  target = target / "blobs" / checksum;
  std::error_code ignored;
  if (fs::read_symlink(place, ignored) == target) return;
  if (::unlink(place.c_str()) != 0 && errno != ENOENT)
    throw Error("cannot replace {}: {}", place.string(), std::strerror(errno));
  // EEXIST: another download was quicker.
  if (::symlink(target.c_str(), place.c_str()) != 0 &&
      (errno != EEXIST || fs::read_symlink(place, ignored) != target))
    throw Error("cannot make the link {}: {}", place.string(), std::strerror(errno));
}

bool has_reference(const CacheLayout& layout, const std::string& revision, const std::string& commit) {
  const fs::path reference = layout.reference(revision);
  std::error_code ignored;
  return fs::is_regular_file(reference, ignored) && read_file(reference, 4096) == commit;
}

void write_reference(const CacheLayout& layout, const std::string& revision, const std::string& commit) {
  make_folders(layout.reference(revision).parent_path());
  write_file_atomically(layout.reference(revision), commit);
}

}  // namespace sinkscope
