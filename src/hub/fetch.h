// A repository of the hub into the local cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "checkpoint/hub_cache.h"
#include "hub/repository.h"
#include "hub/retry.h"
#include "hub/settings.h"

namespace sinkscope {

struct FetchOptions {
  HubId id;
  std::vector<std::string> include;  // hub/selection.h
  std::vector<std::string> exclude;
  int parallel = 4;  // files at a time
  int timeout = 30;  // seconds without a connection or a byte
  RetryRule retry;
};

struct FetchPlan {
  std::string commit;
  std::vector<RemoteFile> chosen;
  std::vector<RemoteFile> left_out;
  std::size_t blobs_here = 0;        // of the chosen files' contents
  std::uint64_t bytes_resumed = 0;   // of interrupted downloads
  std::uint64_t bytes_to_fetch = 0;  // the rest
};

struct FetchProgress {
  std::uint64_t bytes = 0;  // of plan.bytes_to_fetch
  std::string checking;     // a file that is being checked, "" for none
};

/// Called on the caller's thread.
struct FetchEvents {
  std::function<void(const FetchPlan&)> planned;
  std::function<void(const FetchProgress&)> progress;
  std::function<void(const std::string&)> note;
};

struct FetchedFile {
  RemoteFile file;
  bool downloaded = false;  // now, not before
};

struct FetchReport {
  std::filesystem::path snapshot;
  std::string commit;
  std::vector<FetchedFile> files;
  std::vector<RemoteFile> left_out;
  std::uint64_t received = 0;  // bytes
};

/// Downloads what is missing and checks it. The reference is written last: whoever looks for the model by its
/// branch sees all of a snapshot or the one before. Offline it only looks. Throws Error, UsageError.
FetchReport fetch_repository(const FetchOptions& options, const HubSettings& settings,
                             const FetchEvents& events);

}  // namespace sinkscope
