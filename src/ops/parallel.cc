// Threads of our own and not OpenMP's: a pass is thousands of short pieces of parallel work, and OpenMP's
// threads wait for each other by spinning for milliseconds. On a machine that does anything else besides, a
// thread that waits then holds the processor that the thread it waits for needs, and a small model runs many
// times slower. Here nobody waits for a thread that has not begun: who has time takes the next piece.
#include "ops/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace sinkscope {
namespace {

// Looks at a value this often before the thread sleeps: some tens of microseconds, as long as two pieces of
// work are usually apart.
constexpr int looks_before_sleep = 2000;

thread_local bool inside_body = false;
std::atomic<int> wanted_threads{0};

inline void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Returns once the value is not `old` any more.
void wait_while(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  for (int look = 0; look < looks_before_sleep; ++look) {
    if (value.load(std::memory_order_acquire) != old) return;
    pause_briefly();
  }
  value.wait(old, std::memory_order_acquire);
}

struct Job {
  std::int64_t count;
  void (*call)(void*, std::int64_t);
  void* context;
  std::atomic<std::int64_t> next{0};
  std::mutex failing = {};
  std::exception_ptr failure = {};
  std::int64_t failed_at = count;

  void work() {
    for (std::int64_t i = next.fetch_add(1); i < count; i = next.fetch_add(1)) {
      try {
        call(context, i);
      } catch (...) {
        const std::lock_guard lock(failing);
        if (i >= failed_at) continue;
        failed_at = i;
        failure = std::current_exception();
      }
    }
  }
};

// Sleeping threads that help with one job at a time.
class Helpers {
 public:
  ~Helpers() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    announce();
    for (std::thread& thread : threads_) thread.join();
  }

  void help(Job& job, int helpers) {
    const std::lock_guard one_at_a_time(running_);
    while (static_cast<int>(threads_.size()) < helpers)
      threads_.emplace_back([this, index = static_cast<int>(threads_.size())] { loop(index); });
    set_job(&job, helpers);
    announce();
    job.work();
    set_job(nullptr, 0);  // who has not begun stays out
    for (std::uint32_t busy = busy_.load(); busy != 0; busy = busy_.load()) wait_while(busy_, busy);
  }

 private:
  void set_job(Job* job, int helpers) {
    const std::lock_guard lock(mutex_);
    job_ = job;
    helpers_ = helpers;
  }

  void announce() {
    announced_.fetch_add(1, std::memory_order_release);
    announced_.notify_all();
  }

  Job* take_job(int index) {
    const std::lock_guard lock(mutex_);
    if (job_ == nullptr || index >= helpers_) return nullptr;
    busy_.fetch_add(1);
    return job_;
  }

  bool stopping() {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  void loop(int index) {
    omp_set_num_threads(1);  // of this thread only
    inside_body = true;
    // Of the announcement before: the one that this thread was made for counts.
    std::uint32_t seen = announced_.load(std::memory_order_acquire) - 1;
    while (!stopping()) {
      wait_while(announced_, seen);
      seen = announced_.load(std::memory_order_acquire);
      Job* job = take_job(index);
      if (job == nullptr) continue;
      job->work();
      busy_.fetch_sub(1, std::memory_order_release);
      busy_.notify_all();
    }
  }

  std::mutex running_;
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // of the next three
  Job* job_ = nullptr;
  int helpers_ = 0;
  bool stopping_ = false;
  std::atomic<std::uint32_t> announced_{0};
  std::atomic<std::uint32_t> busy_{0};
};

Helpers& helpers() {
  static Helpers all;
  return all;
}

// This thread for the time of a body.
class InsideBody {
 public:
  InsideBody() : threads_of_libraries_(omp_get_max_threads()) {
    omp_set_num_threads(1);
    inside_body = true;
  }
  ~InsideBody() {
    inside_body = false;
    omp_set_num_threads(threads_of_libraries_);
  }
  InsideBody(const InsideBody&) = delete;
  InsideBody& operator=(const InsideBody&) = delete;

 private:
  int threads_of_libraries_;
};

}  // namespace

int thread_count() {
  const int wanted = wanted_threads.load();
  return wanted > 0 ? wanted : omp_get_max_threads();
}

void set_thread_count(int count) { wanted_threads = count; }

void run_in_parallel(std::int64_t count, void (*call)(void* context, std::int64_t i), void* context) {
  if (inside_body) {
    for (std::int64_t i = 0; i < count; ++i) call(context, i);
    return;
  }
  const auto threads = static_cast<int>(std::min<std::int64_t>(thread_count(), count));
  Job job{count, call, context};
  {
    const InsideBody inside;
    if (threads > 1)
      helpers().help(job, threads - 1);
    else
      job.work();
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace sinkscope
