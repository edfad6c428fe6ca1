// The writing side of a run directory: one process at a time, resumable at any moment.
#include <fcntl.h>
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/files.h"
#include "base/output_file.h"
#include "record/run_files.h"
#include "record/run_json.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_used_folder(const fs::path& folder) {
  throw UsageError(
      "{} exists already and is not empty; name a new folder, or go on with an interrupted run by --resume "
      "{}",
      folder.string(), folder.string());
}

// samples.jsonl, open for appending and locked. The lock is on this file because it is there from the first
// moment on and never replaced while somebody else may hold it; the system drops it when the process ends.
class LockedSamples {
 public:
  LockedSamples() = default;
  LockedSamples(fs::path path, int extra_flags) : path_(std::move(path)) {
    // After a lock the name may stand for another file: a resuming process replaces it (see replace).
    do {
      close();
      fd_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | extra_flags, 0644);
      if (fd_ < 0 && errno == EEXIST) refuse_used_folder(path_.parent_path());
      if (fd_ < 0) fail_to_write(path_.string());
      lock();
    } while (!is_current());
  }
  ~LockedSamples() { close(); }
  LockedSamples(LockedSamples&& other) noexcept { swap(other); }
  LockedSamples& operator=(LockedSamples&& other) noexcept {
    swap(other);
    return *this;
  }

  void truncate(std::uint64_t size) {
    if (::ftruncate(fd_, static_cast<off_t>(size)) != 0 || ::fsync(fd_) != 0) fail_to_write(path_.string());
  }

  // All of the line or nothing of it, on the disk.
  void append(const std::string& line) {
    struct stat before {};
    if (::fstat(fd_, &before) != 0) fail_to_write(path_.string());
    const ssize_t written = ::write(fd_, line.data(), line.size());
    // A short write is a disk that became full.
    if (written >= 0 && static_cast<std::size_t>(written) < line.size()) errno = ENOSPC;
    if (written < 0 || static_cast<std::size_t>(written) < line.size() || ::fsync(fd_) != 0) {
      const int error = errno;
      if (::ftruncate(fd_, before.st_size) != 0) {
        // What remains is a torn last line, which --resume cuts off.
      }
      errno = error;
      fail_to_write(path_.string());
    }
  }

  // New content under the same name, locked before anybody can see it.
  void replace(const std::string& content) {
    const fs::path temporary = path_.string() + ".tmp";
    LockedSamples fresh(temporary, O_TRUNC);
    fresh.append(content);
    if (::rename(temporary.c_str(), path_.c_str()) != 0) fail_to_write(path_.string());
    sync_folder(path_.parent_path());
    fresh.path_ = path_;
    swap(fresh);
  }

 private:
  void swap(LockedSamples& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(fd_, other.fd_);
  }

  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

  void lock() {
    if (::flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    if (errno == EWOULDBLOCK) {
      close();
      throw UsageError("another process is writing {}; wait until it has ended, or stop it",
                       path_.parent_path().string());
    }
    // Some network file systems know no locks. Refusing to write there would help nobody.
  }

  bool is_current() const {
    struct stat opened {};
    struct stat named {};
    return ::fstat(fd_, &opened) == 0 && ::stat(path_.c_str(), &named) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
  }

  fs::path path_;
  int fd_ = -1;
};

bool starts_and_ends(std::string_view text, std::string_view start, std::string_view end) {
  return text.size() >= start.size() + end.size() && text.starts_with(start) && text.ends_with(end);
}

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

void remove_leftovers(const fs::path& folder) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool ours =
        name == "run.json.tmp" || name == "samples.jsonl.tmp" || starts_and_ends(name, "sample_", ".tmp");
    std::error_code ignored;
    if (ours) fs::remove_all(entry.path(), ignored);
  }
  if (error) throw Error("cannot read the folder {}: {}", folder.string(), error.message());
}

struct RunDirectory::State {
  fs::path folder;
  RunInfo info;
  std::set<std::int64_t> finished;
  LockedSamples samples;

  void write_info() {
    write_file_atomically(folder / run_json_name, run_json(info));
    sync_folder(folder);
  }

  // Takes over what samples.jsonl says; lines that are torn or whose arrays are missing go.
  void read_finished() {
    const SampleLines samples_read = read_sample_lines(folder / samples_name);
    std::string kept;
    for (std::size_t i = 0; i < samples_read.records.size(); ++i) {
      const std::int64_t index = samples_read.records[i].index;
      if (!fs::is_regular_file(sample_path(folder, index))) continue;
      finished.insert(index);
      kept += samples_read.lines[i];
    }
    if (kept.size() < samples_read.sound_bytes)
      samples.replace(kept);
    else
      samples.truncate(samples_read.sound_bytes);
  }

  // Samples are finished in any order; a whole run's lines are in that of the indices.
  void sort_samples() {
    const SampleLines read = read_sample_lines(folder / samples_name);
    std::map<std::int64_t, std::string_view> by_index;
    for (std::size_t i = 0; i < read.records.size(); ++i)
      by_index.emplace(read.records[i].index, read.lines[i]);
    std::string sorted;
    std::string as_finished;
    for (const auto& [index, line] : by_index) sorted += line;
    for (const auto& line : read.lines) as_finished += line;
    if (sorted != as_finished) samples.replace(sorted);
  }
};

RunDirectory::RunDirectory(std::unique_ptr<State> state) : state_(std::move(state)) {}
RunDirectory::~RunDirectory() = default;
RunDirectory::RunDirectory(RunDirectory&&) noexcept = default;
RunDirectory& RunDirectory::operator=(RunDirectory&&) noexcept = default;

// What a run leaves that was killed, or found the disk full, before its run.json was written: nothing that
// counts.
static bool holds_an_unborn_run(const fs::path& folder) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    const bool empty_samples = name == samples_name && fs::file_size(entry.path(), error) == 0;
    if (!empty_samples && name != std::string(run_json_name) + ".tmp") return false;
  }
  return !error;
}

RunDirectory RunDirectory::create(const fs::path& folder, RunInfo info) {
  if (fs::exists(folder) && !fs::is_directory(folder))
    throw UsageError("{} is a file; name a folder that does not exist yet or is empty", folder.string());
  make_folders(folder);
  std::error_code error;
  const bool empty = fs::is_empty(folder, error);
  if (error) throw Error("cannot read the folder {}: {}", folder.string(), error.message());
  const bool unborn = !empty && holds_an_unborn_run(folder);
  if (!empty && !unborn) refuse_used_folder(folder);
  auto state = std::make_unique<State>();
  state->folder = folder;
  // O_EXCL: of two processes that both saw the empty folder one goes on. An unborn run's file is there
  // already; of two that find it one gets the lock.
  state->samples = LockedSamples(folder / samples_name, unborn ? 0 : O_EXCL);
  if (unborn && !holds_an_unborn_run(folder)) refuse_used_folder(folder);
  state->info = std::move(info);
  state->info.started = utc_now();
  state->info.ended.reset();
  state->write_info();
  return RunDirectory(std::move(state));
}

RunDirectory RunDirectory::resume(const fs::path& folder) {
  auto state = std::make_unique<State>();
  state->folder = folder;
  read_run_info(folder);  // before anything is made in a folder that is none of ours
  state->samples = LockedSamples(folder / samples_name, 0);
  state->info = read_run_info(folder);
  state->read_finished();
  remove_leftovers(folder);
  state->info.ended.reset();
  state->write_info();
  return RunDirectory(std::move(state));
}

const fs::path& RunDirectory::folder() const { return state_->folder; }
const RunInfo& RunDirectory::info() const { return state_->info; }
const std::set<std::int64_t>& RunDirectory::finished() const { return state_->finished; }

void RunDirectory::add_sample(const SampleRecord& record) {
  const fs::path arrays = sample_path(state_->folder, record.index);
  if (record.index < 0 || state_->finished.contains(record.index))
    throw Error("{}: sample {} is recorded already or has no valid index", state_->folder.string(),
                record.index);
  if (!fs::is_regular_file(arrays))
    throw Error("{} is missing; a sample is recorded after its arrays", arrays.string());
  state_->samples.append(sample_line(record));
  state_->finished.insert(record.index);
}

void RunDirectory::end() {
  state_->sort_samples();
  state_->info.ended = utc_now();
  state_->write_info();
}

}  // namespace sinkscope
