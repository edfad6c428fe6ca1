// Whether a model fits into this machine, said before it is loaded.
#pragma once

#include <sinkscope/memory.h>

#include <cstdint>
#include <string>

namespace sinkscope {

/// Bytes this process can still get: what the system has left, and what its cgroup and `ulimit -v` allow.
std::int64_t available_memory();

/// Bytes of the largest resident set to expect of this process: what it has now, what libraries and code made
/// at run time will add, and the estimate.
std::int64_t expected_peak(const MemoryEstimate& estimate);

/// "16.0 GiB", "12.3 MiB".
std::string memory_text(std::int64_t bytes);

/// Throws Error with the numbers, and with what would fit, when the estimate is above what is available.
void check_memory(const Checkpoint& checkpoint, const MemoryUse& use);

}  // namespace sinkscope
