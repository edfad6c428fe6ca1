// What the threads of one fetch share, and the waiting between tries.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "hub/answer_errors.h"
#include "hub/cache_layout.h"
#include "hub/http.h"
#include "hub/retry.h"

namespace sinkscope {

/// Ends a thread's work because another thread failed.
struct TransferStopped : std::runtime_error {
  TransferStopped() : std::runtime_error("stopped") {}
};

class Transfer {
 public:
  Transfer(CacheLayout cache, RetryRule rule) : layout(std::move(cache)), retry(rule) {}

  const CacheLayout layout;
  const RetryRule retry;

  const std::atomic<bool>& stop() const { return stop_; }
  /// Ends all waiting and every request.
  void stop_all();
  /// Sleeps. Throws TransferStopped.
  void pause(double seconds);
  /// A line for the user; the main thread takes and shows it.
  void note(std::string line);
  std::vector<std::string> take_notes();

  /// For an answer that is not what was asked for, after `failures` in a row: returns after a wait where
  /// another try makes sense, throws the Error that says what is wrong where none does.
  void wait_or_give_up(const HttpAnswer& answer, int failures, const RequestSubject& subject);

 private:
  double chance();

  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::string> notes_;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace sinkscope
