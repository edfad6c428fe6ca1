// When a failed request is tried again, and after how long.
#pragma once

#include <cstdint>
#include <optional>

namespace sinkscope {

struct RetryRule {
  int retries = 5;          // failures in a row that are put up with
  double first_wait = 1.0;  // seconds; twice as long before each further try
};

/// Seconds no wait exceeds: our own ones, and those a server asks for (the hub counts requests per 5
/// minutes).
inline constexpr double longest_backoff = 30;
inline constexpr double longest_asked_wait = 300;

/// 408, 429 and 5xx, but for what will not change (501, 505).
bool is_temporary(long status);

/// Seconds before try number `failures` + 1 (failures counts from 1). `asked`: Retry-After in seconds.
/// `chance`, from 0 to 1, spreads the tries of many programs over the upper half of the wait.
double wait_before_retry(const RetryRule& rule, int failures, std::optional<std::int64_t> asked,
                         double chance);

/// Counts failures in a row. A failure after some bytes arrived begins a new row; only bytes beyond the
/// farthest point reached so far count, so that a server that always cuts at the same place is given up.
class FailureCount {
 public:
  /// Bytes that count as getting on.
  static constexpr std::uint64_t step = std::uint64_t{1} << 20;

  explicit FailureCount(std::uint64_t position) : farthest_(position) {}
  /// Returns the failures in a row, this one included.
  int add(std::uint64_t position);

 private:
  std::uint64_t farthest_;
  int failures_ = 0;
};

}  // namespace sinkscope
