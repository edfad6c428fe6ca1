#include "hub/fetch.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <future>
#include <memory>
#include <mutex>
#include <semaphore>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include "hub/cached_snapshot.h"
#include "hub/download.h"
#include "hub/file_lock.h"
#include "hub/selection.h"
#include "hub/url.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr auto progress_interval = std::chrono::milliseconds(100);
constexpr double reference_lock_poll_seconds = 0.05;

using Downloads = std::vector<std::unique_ptr<Download>>;

HttpSettings http_settings(const FetchOptions& options, const HubSettings& settings) {
  return {.timeout = options.timeout, .token = settings.token, .endpoint = settings.endpoint};
}

RequestSubject subject_of(const FetchOptions& options, const HubSettings& settings, std::string file) {
  return {.id = options.id,
          .file = std::move(file),
          .endpoint = settings.endpoint,
          .has_token = !settings.token.empty()};
}

RemoteRepository list_of_files(HttpSession& session, Transfer& transfer, const RequestSubject& subject) {
  const std::string where = fmt::format("the answer of {} for {}", subject.endpoint, subject.id.text());
  std::string text;
  const HttpBody body{.begin = [&](const HttpHead&) { text.clear(); },
                      .write =
                          [&](std::span<const std::byte> bytes) {
                            if (bytes.size() > largest_answer - text.size())
                              throw Error("{} is longer than {} bytes", where, largest_answer);
                            text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
                          }};
  for (int failures = 1;; ++failures) {
    const HttpAnswer answer = session.get(repository_url(subject.endpoint, subject.id), 0, body);
    if (answer.failure == HttpFailure::none && answer.head.status == 200) break;
    transfer.wait_or_give_up(answer, failures, subject);
  }
  RemoteRepository repository = parse_repository(text, where);
  if (is_commit(subject.id.revision) && repository.commit != subject.id.revision)
    throw Error("{} is about the commit {}", where, repository.commit);
  return repository;
}

// In a thread of its own, so that notes about waiting are shown at once.
RemoteRepository ask_for_files(Transfer& transfer, const FetchOptions& options, const HubSettings& settings,
                               const FetchEvents& events) {
  std::future<RemoteRepository> answer = std::async(std::launch::async, [&] {
    HttpSession session(http_settings(options, settings), transfer.stop());
    return list_of_files(session, transfer, subject_of(options, settings, ""));
  });
  while (answer.wait_for(progress_interval) != std::future_status::ready)
    for (const std::string& line : transfer.take_notes()) events.note(line);
  return answer.get();
}

// One download for each content; files that share it have one blob.
Downloads needed_downloads(const FetchPlan& plan, const FetchOptions& options, const HubSettings& settings,
                           const CacheLayout& layout) {
  std::set<std::string_view> contents;
  Downloads downloads;
  for (const RemoteFile& file : plan.chosen) {
    if (!contents.insert(file.checksum).second || has_blob(layout, file)) continue;
    auto download = std::make_unique<Download>();
    download->file = file;
    download->url = file_url(settings.endpoint, options.id, plan.commit, file.name);
    download->subject = subject_of(options, settings, file.name);
    download->position = resumable_bytes(layout, file);
    downloads.push_back(std::move(download));
  }
  return downloads;
}

void count_bytes(FetchPlan& plan, const Downloads& downloads) {
  std::set<std::string_view> contents;
  for (const RemoteFile& file : plan.chosen) contents.insert(file.checksum);
  plan.blobs_here = contents.size() - downloads.size();
  for (const auto& download : downloads) {
    plan.bytes_resumed += download->position;
    plan.bytes_to_fetch += download->file.size - download->position;
  }
}

void check_room(const FetchPlan& plan, const FetchOptions& options, fs::path folder) {
  std::error_code failed;
  folder = fs::absolute(folder);
  while (!fs::exists(folder, failed) && folder.has_relative_path()) folder = folder.parent_path();
  const fs::space_info space = fs::space(folder, failed);
  if (failed || space.available >= plan.bytes_to_fetch) return;
  throw Error("{} needs {:.3f} GB, {} has {:.3f} GB free; make room, or name another place in HF_HUB_CACHE",
              options.id.text(), static_cast<double>(plan.bytes_to_fetch) * 1e-9, folder.string(),
              static_cast<double>(space.available) * 1e-9);
}

// Takes downloads until none is left or one failed.
class Crew {
 public:
  Crew(Downloads& downloads, Transfer& transfer, HttpSettings settings)
      : downloads_(downloads), transfer_(transfer), settings_(std::move(settings)) {}

  void work() {
    try {
      HttpSession session(settings_, transfer_.stop());
      for (std::size_t i = next_++; i < downloads_.size() && !transfer_.stop(); i = next_++)
        download_file(session, *downloads_[i], transfer_);
    } catch (const TransferStopped&) {
    } catch (...) {
      const std::lock_guard guard(mutex_);
      if (!failure_) failure_ = std::current_exception();
      transfer_.stop_all();
    }
    finished_.release();
  }

  /// True when another thread has finished, false after a moment without that.
  bool wait_for_one() { return finished_.try_acquire_for(progress_interval); }
  /// After all have finished.
  void rethrow_failure() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  Downloads& downloads_;
  Transfer& transfer_;
  const HttpSettings settings_;
  std::atomic<std::size_t> next_ = 0;
  std::counting_semaphore<> finished_{0};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

void show(const Downloads& downloads, const FetchPlan& plan, Transfer& transfer, const FetchEvents& events) {
  for (const std::string& line : transfer.take_notes()) events.note(line);
  FetchProgress progress;
  std::uint64_t position = 0;
  for (const auto& download : downloads) {
    position += download->position;
    if (download->checking) progress.checking = download->file.name;
  }
  progress.bytes = position - std::min(position, plan.bytes_resumed);
  events.progress(progress);
}

void run_downloads(Downloads& downloads, const FetchPlan& plan, Transfer& transfer,
                   const FetchOptions& options, const HubSettings& settings, const FetchEvents& events) {
  Crew crew(downloads, transfer, http_settings(options, settings));
  const std::size_t count = std::min(downloads.size(), static_cast<std::size_t>(options.parallel));
  std::vector<std::jthread> threads;
  try {
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&crew] { crew.work(); });
    for (std::size_t working = count; working > 0; working -= crew.wait_for_one() ? 1 : 0)
      show(downloads, plan, transfer, events);
  } catch (...) {
    transfer.stop_all();  // no thread to be had; those there are joined as `threads` goes
    throw;
  }
  threads.clear();
  show(downloads, plan, transfer, events);
  crew.rethrow_failure();
}

void publish_snapshot(const FetchPlan& plan, const FetchOptions& options, Transfer& transfer) {
  for (const RemoteFile& file : plan.chosen)
    link_file(transfer.layout, plan.commit, file.name, file.checksum);
  // Nothing is written where nothing is missing: a cache may be for reading only.
  if (options.id.revision == plan.commit || has_reference(transfer.layout, options.id.revision, plan.commit))
    return;
  FileLock lock(transfer.layout.lock("refs"));
  while (!lock.try_lock()) transfer.pause(reference_lock_poll_seconds);
  write_reference(transfer.layout, options.id.revision, plan.commit);
}

FetchReport report_offline(const FetchOptions& options, const CacheLayout& layout) {
  CachedSnapshot cached = cached_snapshot(layout, options.id, options.include, options.exclude);
  FetchReport report{.snapshot = fs::absolute(cached.directory),
                     .commit = cached.directory.filename().string(),
                     .files = {},
                     .left_out = std::move(cached.left_out)};
  for (RemoteFile& file : cached.files) report.files.push_back({std::move(file), false});
  return report;
}

FetchReport report_of(const FetchPlan& plan, const Downloads& downloads, const CacheLayout& layout) {
  FetchReport report{.snapshot = fs::absolute(layout.snapshot(plan.commit)),
                     .commit = plan.commit,
                     .files = {},
                     .left_out = plan.left_out};
  std::set<std::string_view> downloaded;
  for (const auto& download : downloads) {
    downloaded.insert(download->file.checksum);
    report.received += download->received;
  }
  for (const RemoteFile& file : plan.chosen)
    report.files.push_back({file, downloaded.contains(file.checksum)});
  return report;
}

}  // namespace

FetchReport fetch_repository(const FetchOptions& options, const HubSettings& settings,
                             const FetchEvents& events) {
  Transfer transfer(cache_layout(settings.cache, options.id), options.retry);
  if (settings.offline) return report_offline(options, transfer.layout);
  RemoteRepository remote = ask_for_files(transfer, options, settings, events);
  Selection selection = select_files(remote.files, options.include, options.exclude, options.id.text());
  FetchPlan plan{.commit = std::move(remote.commit),
                 .chosen = std::move(selection.chosen),
                 .left_out = std::move(selection.left_out)};
  Downloads downloads = needed_downloads(plan, options, settings, transfer.layout);
  count_bytes(plan, downloads);
  check_room(plan, options, transfer.layout.repository);
  events.planned(plan);
  run_downloads(downloads, plan, transfer, options, settings, events);
  publish_snapshot(plan, options, transfer);
  return report_of(plan, downloads, transfer.layout);
}

}  // namespace sinkscope
