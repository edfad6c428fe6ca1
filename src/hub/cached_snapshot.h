// What a snapshot in the cache holds, without asking the hub.
#pragma once

#include <string>
#include <vector>

#include "hub/cache_layout.h"
#include "hub/selection.h"

namespace sinkscope {

struct CachedSnapshot {
  std::filesystem::path directory;
  std::vector<RemoteFile> files;     // the chosen ones that are there
  std::vector<RemoteFile> left_out;  // there, but not chosen
};

/// Throws Error naming what is missing: the snapshot, a blob that a link leads to, a file that the weight
/// index names, or, without `include`, config.json or the weights. Files of the repository that were never
/// fetched and that nothing names cannot be missed.
CachedSnapshot cached_snapshot(const CacheLayout& layout, const HubId& id,
                               const std::vector<std::string>& include,
                               const std::vector<std::string>& exclude);

}  // namespace sinkscope
