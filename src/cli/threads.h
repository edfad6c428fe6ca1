// How many threads to use.
#pragma once

namespace sinkscope {

inline constexpr int most_threads = 4096;

/// Physical cores that this process may use: its affinity mask, hyper-threads of one core counted once, and
/// not more than the cgroup's CPU quota (rounded up). At least 1.
int default_threads();

/// For everything that this process computes. Throws UsageError unless 1 <= count <= 4096.
void use_threads(int count);

}  // namespace sinkscope
