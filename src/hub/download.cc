#include "hub/download.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <span>
#include <system_error>

#include "base/files.h"
#include "base/output_file.h"
#include "hub/checksum.h"
#include "hub/file_lock.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr double lock_poll_seconds = 0.2;

// The size of a regular file; none when there is no such file.
std::optional<std::uint64_t> size_of(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_regular_file(path, failed)) return std::nullopt;
  const std::uintmax_t size = fs::file_size(path, failed);
  return failed ? std::nullopt : std::optional<std::uint64_t>(size);
}

void remove_file(const fs::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT)
    throw Error("cannot remove {}: {}", path.string(), std::strerror(errno));
}

void wait_for_lock(FileLock& lock, const Download& download, Transfer& transfer) {
  for (bool said = false; !lock.try_lock(); said = true) {
    if (!said) transfer.note(fmt::format("{}: another program is fetching it; waiting", download.file.name));
    transfer.pause(lock_poll_seconds);
  }
}

// Where an answer's bytes go: after what is there, or over it when the server sends the whole file.
class IncompleteFile {
 public:
  IncompleteFile(const fs::path& path, std::uint64_t offset, Download& download)
      : path_(path), offset_(offset), download_(download) {}

  void begin(const HttpHead& head) {
    const std::uint64_t size = download_.file.size;
    const bool whole = head.status == 200;
    if (!whole && (!head.range || head.range->first != offset_))
      throw Error("{}: asked for the bytes from {} on, the server sends others", download_.subject.text(),
                  offset_);
    const std::optional<std::uint64_t> total = whole ? head.length : head.range->total;
    if (total && *total != size)
      throw Error("{}: the server offers {} bytes, the hub's list says {}", download_.subject.text(), *total,
                  size);
    file_.emplace(path_, O_WRONLY | O_CREAT | (whole ? O_TRUNC : O_APPEND), path_.string());
    if (whole) download_.position = 0;
  }

  void write(std::span<const std::byte> bytes) {
    if (bytes.size() > download_.file.size - download_.position)
      throw Error("{}: the server sends more than the {} bytes of the hub's list", download_.subject.text(),
                  download_.file.size);
    file_->write(bytes);
    download_.position += bytes.size();
    download_.received += bytes.size();
  }

  void close() {
    if (file_) file_->close();
  }

 private:
  const fs::path& path_;
  std::uint64_t offset_;
  Download& download_;
  std::optional<OutputFile> file_;
};

HttpAnswer request_rest(HttpSession& session, Download& download, const fs::path& incomplete) {
  IncompleteFile file(incomplete, download.position, download);
  const HttpBody body{.begin = [&](const HttpHead& head) { file.begin(head); },
                      .write = [&](std::span<const std::byte> bytes) { file.write(bytes); }};
  HttpAnswer answer = session.get(download.url, download.position, body);
  file.close();
  const bool complete = answer.head.status == 200 || answer.head.status == 206;
  if (answer.failure == HttpFailure::none && complete && download.position < download.file.size) {
    answer.failure = HttpFailure::broken;
    answer.reason = fmt::format("{} of {} bytes came", download.position.load(), download.file.size);
  }
  return answer;
}

// Downloads until all bytes are there. Returns whether they came in pieces, from several requests or an
// earlier time, which may not belong together.
bool complete_bytes(HttpSession& session, Download& download, Transfer& transfer,
                    const fs::path& incomplete) {
  FailureCount failures(download.position);
  bool in_pieces = download.position > 0;
  while (download.position < download.file.size) {
    const HttpAnswer answer = request_rest(session, download, incomplete);
    if (answer.head.status == 200) in_pieces = false;
    if (download.position == download.file.size) break;
    const int count = failures.add(download.position);
    const bool beyond_its_end = answer.failure == HttpFailure::none && answer.head.status == 416;
    if (beyond_its_end && download.position > 0 && count <= std::max(1, transfer.retry.retries)) {
      transfer.note(fmt::format("{}: the server does not go on from byte {}; from the beginning",
                                download.file.name, download.position.load()));
      remove_file(incomplete);
      download.position = 0;
    } else {
      transfer.wait_or_give_up(answer, count, download.subject);
    }
    if (download.position > 0) in_pieces = true;
  }
  return in_pieces;
}

// To the disk, then under its name: what has the name is whole.
void publish(const fs::path& incomplete, const fs::path& blob) {
  OutputFile file(incomplete, O_WRONLY | O_CREAT, incomplete.string());
  file.sync();
  file.close();
  if (::rename(incomplete.c_str(), blob.c_str()) != 0)
    throw Error("cannot rename {} to {}: {}", incomplete.string(), blob.string(), std::strerror(errno));
  sync_folder(blob.parent_path());
}

std::string checksum_of(Download& download, const fs::path& incomplete) {
  download.checking = true;
  const std::string found = checksum_of_file(incomplete, download.file.kind);
  download.checking = false;
  return found;
}

}  // namespace

bool has_blob(const CacheLayout& layout, const RemoteFile& file) {
  return size_of(layout.blob(file.checksum)) == file.size;
}

std::uint64_t resumable_bytes(const CacheLayout& layout, const RemoteFile& file) {
  const std::uint64_t size = size_of(layout.incomplete(file.checksum)).value_or(0);
  return size <= file.size ? size : 0;
}

void download_file(HttpSession& session, Download& download, Transfer& transfer) {
  const RemoteFile& file = download.file;
  const fs::path incomplete = transfer.layout.incomplete(file.checksum);
  FileLock lock(transfer.layout.lock(file.checksum));
  wait_for_lock(lock, download, transfer);
  if (has_blob(transfer.layout, file)) {
    download.position = file.size;
    return;
  }
  make_folders(incomplete.parent_path());
  for (bool again = false;; again = true) {
    download.position = again ? 0 : resumable_bytes(transfer.layout, file);
    if (download.position == 0)
      OutputFile(incomplete, O_WRONLY | O_CREAT | O_TRUNC, incomplete.string()).close();
    const bool in_pieces = complete_bytes(session, download, transfer, incomplete);
    const std::string found = checksum_of(download, incomplete);
    if (found == file.checksum) break;
    remove_file(incomplete);
    if (again || !in_pieces)
      throw Error("{}: the checksum is {}, the hub's list says {}; what came was removed",
                  download.subject.text(), found, file.checksum);
    transfer.note(fmt::format("{}: its pieces do not fit together; from the beginning", file.name));
  }
  publish(incomplete, transfer.layout.blob(file.checksum));
}

}  // namespace sinkscope
