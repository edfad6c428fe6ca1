#include "hub/cached_snapshot.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/files.h"
#include "checkpoint/message.h"
#include "checkpoint/weight_index.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr const char* index_file = "model.safetensors.index.json";
constexpr std::uintmax_t largest_index = std::uintmax_t{256} << 20;

struct SnapshotFiles {
  std::vector<RemoteFile> there;
  std::vector<std::string> dangling;  // links to blobs that are not there
};

SnapshotFiles files_of(const fs::path& snapshot) {
  SnapshotFiles files;
  for (const auto& entry : fs::recursive_directory_iterator(snapshot)) {
    std::error_code failed;
    if (entry.is_directory(failed)) continue;
    const std::string name = entry.path().lexically_relative(snapshot).string();
    if (!entry.is_regular_file(failed)) {
      files.dangling.push_back(name);
      continue;
    }
    RemoteFile file{.name = name, .size = entry.file_size(), .checksum = {}};
    file.checksum = fs::read_symlink(entry.path(), failed).filename().string();
    if (file.checksum.size() == 64) file.kind = ChecksumKind::sha256;
    files.there.push_back(std::move(file));
  }
  std::sort(files.there.begin(), files.there.end(),
            [](const RemoteFile& a, const RemoteFile& b) { return a.name < b.name; });
  return files;
}

// Shards that the index names and the snapshot lacks.
std::vector<std::string> missing_shards(const fs::path& snapshot, const std::set<std::string>& there) {
  if (!there.contains(index_file)) return {};
  const fs::path index = snapshot / index_file;
  std::set<std::string> missing;
  for (const auto& [tensor, shard] : parse_weight_index(read_file(index, largest_index), index.string()))
    if (!there.contains(shard)) missing.insert(shard);
  return {missing.begin(), missing.end()};
}

}  // namespace

CachedSnapshot cached_snapshot(const CacheLayout& layout, const HubId& id,
                               const std::vector<std::string>& include,
                               const std::vector<std::string>& exclude) {
  const auto directory = find_snapshot(layout.repository, id.revision);
  if (!directory)
    throw Error(
        "HF_HUB_OFFLINE forbids the network, and {} holds no {}; it can be fetched without that variable",
        layout.repository.string(), id.text());
  SnapshotFiles files = files_of(*directory);
  std::set<std::string> there;
  for (const RemoteFile& file : files.there) there.insert(file.name);
  std::vector<std::string> missing = files.dangling;
  const auto add_missing = [&](const std::string& name) {
    if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
  };
  if (include.empty()) {
    if (!there.contains("config.json")) add_missing("config.json");
    if (!there.contains("model.safetensors") && !there.contains(index_file)) add_missing("model.safetensors");
    for (const std::string& shard : missing_shards(*directory, there)) add_missing(shard);
  }
  if (!missing.empty())
    throw Error(
        "HF_HUB_OFFLINE forbids the network, and {} lacks {}; they can be fetched without that variable",
        directory->string(), listed(missing));
  Selection selection = select_files(files.there, include, exclude, directory->string());
  return {.directory = *directory,
          .files = std::move(selection.chosen),
          .left_out = std::move(selection.left_out)};
}

}  // namespace sinkscope
