// The folders of one repository in the hub cache, as huggingface_hub lays them out (docs/hub.md).
#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/hub_cache.h"

namespace sinkscope {

struct CacheLayout {
  std::filesystem::path repository;  // CACHE/models--ORG--NAME
  std::filesystem::path locks;       // CACHE/.locks/models--ORG--NAME

  std::filesystem::path blob(const std::string& checksum) const { return repository / "blobs" / checksum; }
  std::filesystem::path incomplete(const std::string& checksum) const {
    return repository / "blobs" / (checksum + ".incomplete");
  }
  std::filesystem::path lock(const std::string& name) const { return locks / (name + ".lock"); }
  std::filesystem::path reference(const std::string& revision) const {
    return repository / "refs" / revision;
  }
  std::filesystem::path snapshot(const std::string& commit) const {
    return repository / "snapshots" / commit;
  }
};

CacheLayout cache_layout(const std::filesystem::path& cache, const HubId& id);

/// Makes snapshots/COMMIT/FILE a relative link to the blob, over what may be there.
void link_file(const CacheLayout& layout, const std::string& commit, const std::string& file,
               const std::string& checksum);

bool has_reference(const CacheLayout& layout, const std::string& revision, const std::string& commit);

/// Writes the commit into refs/REVISION, without a line break. Needs the lock "refs".
void write_reference(const CacheLayout& layout, const std::string& revision, const std::string& commit);

}  // namespace sinkscope
