#include "hub/transfer.h"

#include <sinkscope/error.h>

#include <chrono>
#include <utility>

namespace sinkscope {
namespace {

bool can_change(const HttpAnswer& answer, const RequestSubject& subject) {
  switch (answer.failure) {
    case HttpFailure::none:
      return is_temporary(answer.head.status);
    case HttpFailure::unreachable:
      // A network that is not there when the command starts is said at once; one that goes away later may
      // come back.
      return !subject.file.empty();
    case HttpFailure::broken:
      return true;
    default:
      return false;
  }
}

}  // namespace

void Transfer::stop_all() {
  {
    const std::lock_guard guard(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
}

void Transfer::pause(double seconds) {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return stop_.load(); });
  if (stop_) throw TransferStopped();
}

void Transfer::note(std::string line) {
  const std::lock_guard guard(mutex_);
  notes_.push_back(std::move(line));
}

std::vector<std::string> Transfer::take_notes() {
  const std::lock_guard guard(mutex_);
  return std::exchange(notes_, {});
}

double Transfer::chance() {
  const std::lock_guard guard(mutex_);
  return std::uniform_real_distribution<double>()(random_);
}

void Transfer::wait_or_give_up(const HttpAnswer& answer, int failures, const RequestSubject& subject) {
  if (answer.failure == HttpFailure::stopped) throw TransferStopped();
  const std::string what = explain_answer(answer, subject);
  if (!can_change(answer, subject)) throw Error("{}", what);
  if (failures > retry.retries)
    throw Error("{} (tried {} time{}{})", what, failures, failures == 1 ? "" : "s",
                subject.file.empty() ? "" : "; what came is kept, the same command goes on from there");
  const double wait = wait_before_retry(retry, failures, answer.retry_after, chance());
  note(fmt::format("{}; trying again in {:.1f} s", what, wait));
  pause(wait);
}

}  // namespace sinkscope
