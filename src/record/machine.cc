// What a reader of measured times wants to know about the machine.
#include <sinkscope/error.h>
#include <sinkscope/run_directory.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "base/files.h"

namespace sinkscope {
namespace {

// Of the many flags of a processor those that decide which kernels run; x86 and ARM spellings.
constexpr std::array<std::string_view, 18> relevant_sets{
    "sse4_2",   "avx",      "avx2",        "fma",         "f16c",        "avx_vnni",
    "avx512f",  "avx512bw", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile",
    "amx_bf16", "amx_int8", "asimd",       "sve",         "bf16",        "i8mm"};

// The value of the first line "KEY : VALUE" of /proc/cpuinfo with one of these keys.
std::string cpu_field(const std::string& cpuinfo, std::initializer_list<std::string_view> keys) {
  std::istringstream lines(cpuinfo);
  for (std::string line; std::getline(lines, line);)
    for (const std::string_view key : keys)
      if (const std::size_t colon = line.find(": "); line.starts_with(key) && colon != std::string::npos)
        return line.substr(colon + 2);
  return "";
}

std::vector<std::string> relevant_of(const std::string& flags) {
  std::istringstream words(flags);
  std::vector<std::string> found;
  for (std::string word; words >> word;)
    if (std::find(relevant_sets.begin(), relevant_sets.end(), word) != relevant_sets.end())
      found.push_back(word);
  std::sort(found.begin(), found.end());
  return found;
}

std::string read_cpuinfo() {
  try {
    return read_file("/proc/cpuinfo");
  } catch (const Error&) {
    return "";  // a system without it, or a sandbox: the run is worth recording all the same
  }
}

}  // namespace

RunMachine describe_machine(int threads, std::string device) {
  RunMachine machine;
  const std::string cpuinfo = read_cpuinfo();
  machine.cpu = cpu_field(cpuinfo, {"model name", "Model", "CPU implementer"});
  machine.instruction_sets = relevant_of(cpu_field(cpuinfo, {"flags", "Features"}));
  machine.threads = threads;
  machine.memory_bytes = std::int64_t{::sysconf(_SC_PHYS_PAGES)} * ::sysconf(_SC_PAGESIZE);
  utsname system{};
  if (::uname(&system) == 0)
    machine.os = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  machine.device = std::move(device);
  return machine;
}

}  // namespace sinkscope
