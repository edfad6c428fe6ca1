// One file of a repository into its blob: with resume, retries and checksum.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "hub/repository.h"
#include "hub/transfer.h"

namespace sinkscope {

struct Download {
  RemoteFile file;
  std::string url;
  RequestSubject subject;
  std::atomic<std::uint64_t> position = 0;  // bytes that lie on the disk
  std::atomic<bool> checking = false;       // reading them for the checksum
  std::uint64_t received = 0;               // bytes that came over the network
};

/// True when the blob is there with the right size. Its content was checked when it got its name.
bool has_blob(const CacheLayout& layout, const RemoteFile& file);

/// Bytes of an interrupted download that it can go on from.
std::uint64_t resumable_bytes(const CacheLayout& layout, const RemoteFile& file);

/// Returns when the blob is there, whoever fetched it. Throws Error saying what is wrong and what would be
/// right, TransferStopped.
void download_file(HttpSession& session, Download& download, Transfer& transfer);

}  // namespace sinkscope
