#include "cli/memory.h"

#include <fmt/format.h>
#include <sinkscope/error.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <vector>

namespace sinkscope {
namespace {

// Resident pages that libtorch, oneDNN and the code they make at run time add in the first pass; measured
// (docs/benchmarks.md).
constexpr std::int64_t first_pass_bytes = std::int64_t{12} << 20;

constexpr std::int64_t no_limit = std::numeric_limits<std::int64_t>::max();

// A file with one number; "max" and a missing file are no limit.
std::int64_t number_in(const std::string& path) {
  std::ifstream file(path);
  std::int64_t value = 0;
  return file >> value ? value : no_limit;
}

std::int64_t left_in_system() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::string unit;
  std::int64_t kibibytes = 0;
  while (file >> name >> kibibytes >> unit)
    if (name == "MemAvailable:") return kibibytes * 1024;
  return no_limit;
}

// cgroup v2, else v1; the group of this process is the root of what it sees in a container.
std::int64_t left_in_cgroup() {
  const std::int64_t limit = std::min(number_in("/sys/fs/cgroup/memory.max"),
                                      number_in("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
  const std::int64_t used = std::min(number_in("/sys/fs/cgroup/memory.current"),
                                     number_in("/sys/fs/cgroup/memory/memory.usage_in_bytes"));
  return limit == no_limit || used == no_limit ? limit : std::max<std::int64_t>(limit - used, 0);
}

struct OwnMemory {
  std::int64_t mapped = 0;
  std::int64_t resident = 0;
};

OwnMemory own_memory() {
  std::ifstream file("/proc/self/statm");
  OwnMemory pages;
  file >> pages.mapped >> pages.resident;
  const std::int64_t page = ::sysconf(_SC_PAGESIZE);
  return {pages.mapped * page, pages.resident * page};
}

// `ulimit -v`
std::int64_t left_in_limit() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  return std::max<std::int64_t>(static_cast<std::int64_t>(limit.rlim_cur) - own_memory().mapped, 0);
}

struct Alternative {
  std::string what;
  MemoryUse use;
};

std::vector<Alternative> alternatives_to(const MemoryUse& use) {
  std::vector<Alternative> result;
  const auto add = [&](const std::string& what, auto change) {
    MemoryUse other = use;
    change(other);
    result.push_back({what, other});
  };
  if (use.dtype == at::kFloat && use.weights == WeightFormat::native)
    add("--dtype bf16", [](MemoryUse& u) { u.dtype = at::kBFloat16; });
  if (use.weights == WeightFormat::native)
    add("--weights int8", [](MemoryUse& u) { u.weights = WeightFormat::int8; });
  if (use.sequences > 2) add("--batch 1", [](MemoryUse& u) { u.sequences = 1; });
  if (use.maps > 0) add("fewer --maps", [](MemoryUse& u) { u.maps = 0; });
  return result;
}

}  // namespace

std::int64_t available_memory() { return std::min({left_in_system(), left_in_cgroup(), left_in_limit()}); }

std::int64_t expected_peak(const MemoryEstimate& estimate) {
  return own_memory().resident + first_pass_bytes + estimate.total();
}

std::string memory_text(std::int64_t bytes) {
  const auto value = static_cast<double>(bytes);
  constexpr double mebibyte = 1 << 20;
  constexpr double gibibyte = 1 << 30;
  return value < gibibyte ? fmt::format("{:.1f} MiB", value / mebibyte)
                          : fmt::format("{:.1f} GiB", value / gibibyte);
}

void check_memory(const Checkpoint& checkpoint, const MemoryUse& use) {
  const std::int64_t available = available_memory();
  const auto needed = [&](const MemoryUse& u) {
    return estimate_memory(checkpoint, u).total() + first_pass_bytes;
  };
  if (needed(use) <= available) return;
  std::string help;
  for (const Alternative& other : alternatives_to(use))
    help += fmt::format("{}{} would need {}{}", help.empty() ? "" : ", ", other.what,
                        memory_text(needed(other.use)),
                        needed(other.use) <= available ? "" : " (still too much)");
  const MemoryEstimate estimate = estimate_memory(checkpoint, use);
  throw Error("{} needs about {} of memory (weights {}, {} positions x {} at once {}) and {} are free{}{}",
              checkpoint.directory().string(), memory_text(needed(use)), memory_text(estimate.weights),
              use.positions, use.sequences, memory_text(estimate.total() - estimate.weights),
              memory_text(available), help.empty() ? "" : "; ", help);
}

}  // namespace sinkscope
