#include "hub/retry.h"

#include <algorithm>
#include <cmath>

namespace sinkscope {

bool is_temporary(long status) {
  if (status == 408 || status == 429) return true;
  return status >= 500 && status <= 599 && status != 501 && status != 505;
}

double wait_before_retry(const RetryRule& rule, int failures, std::optional<std::int64_t> asked,
                         double chance) {
  const double full = std::min(longest_backoff, std::ldexp(rule.first_wait, std::min(failures, 30) - 1));
  const double own = full * (0.5 + 0.5 * chance);
  if (!asked || *asked <= 0) return own;
  return std::max(own, std::min(static_cast<double>(*asked), longest_asked_wait));
}

int FailureCount::add(std::uint64_t position) {
  if (position >= farthest_ + step) {
    farthest_ = position;
    failures_ = 0;
  }
  return ++failures_;
}

}  // namespace sinkscope
