#include "cli/threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <sched.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <set>
#include <string>

#include "ops/parallel.h"

namespace sinkscope {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

int physical_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 1;
  std::set<std::string> cores;  // lists of hyper-threads that share a core
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    const std::string siblings =
        first_line(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    cores.insert(siblings.empty() ? std::to_string(cpu) : siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

// CPUs that the cgroup's quota allows; 0 when there is no limit. cgroup v2 "max 100000" or "150000 100000",
// else v1.
double cgroup_quota() {
  std::string quota = "-1";
  std::string period;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max"); v2 >> quota >> period) {
    if (quota == "max") return 0;
  } else {
    quota = first_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
    period = first_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  }
  const double allowed = std::atof(quota.c_str());
  const double per = std::atof(period.c_str());
  return allowed > 0 && per > 0 ? allowed / per : 0;
}

}  // namespace

int default_threads() {
  const int cores = physical_cores();
  const double quota = cgroup_quota();
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, cores) : cores;
}

void use_threads(int count) {
  if (count < 1 || count > most_threads)
    throw UsageError("--threads is {}; it must be from 1 to {}", count, most_threads);
  set_thread_count(count);
  // libtorch's few operations between our own loops gain nothing from threads, and OpenMP's would spin beside
  // ours.
  at::set_num_threads(1);
}

}  // namespace sinkscope
