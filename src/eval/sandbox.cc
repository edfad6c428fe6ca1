#include "eval/sandbox.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "eval/sandbox_command.h"
#include "eval/sandbox_process.h"

namespace sinkscope {
namespace {

// Passes in a sandbox that holds: another user, nothing of ours to see, no network, no file system to write
// to, no more processes than allowed, no memory beside the limits.
constexpr const char* probe = R"python(
import ctypes, os, socket, time
assert os.getuid() == 65534, "it runs as user %d" % os.getuid()
for folder in "/home", "/root", "/etc/passwd", "/var", "/mnt", "/opt":
    assert not os.path.exists(folder), folder + " is visible"
names = [name for _, name in socket.if_nameindex() if name != "lo"]
assert not names, "there is a network: " + " ".join(names)
for folder in "/", "/usr", "/dev", "/proc":
    try:
        open(folder + "/sinkscope", "w")
    except OSError:
        continue
    raise AssertionError(folder + " can be written to")
children = []
try:
    for _ in range(8):
        children.append(os.fork())
        if children[-1] == 0:
            time.sleep(60)
            os._exit(0)
except OSError:
    pass
assert len(children) < 8, "the number of processes has no limit"
for child in children:
    os.kill(child, 9)
libc = ctypes.CDLL(None)
assert libc.shmget(0, 4096, 0o1600) < 0, "system calls are not filtered"
)python";

constexpr int probe_processes = 3;

}  // namespace

void require_sandbox() {
  SandboxLimits limits;
  limits.seconds = 20;
  limits.processes = probe_processes;
  ProgramResult result;
  try {
    result = run_python(probe, limits);
  } catch (const Error& error) {
    const std::string what = error.what();
    if (what.find("namespace") == std::string::npos && what.find("uid map") == std::string::npos) throw;
    throw Error(
        "{}; the kernel must allow user namespaces to this user (sysctl kernel.unprivileged_userns_clone=1, "
        "kernel.apparmor_restrict_unprivileged_userns=0 or user.max_user_namespaces above 0, and in a "
        "container its "
        "own rules)",
        what);
  }
  if (result.outcome != Outcome::passed)
    throw Error("the sandbox for generated code does not hold here ({}), so none is run", result.reason);
}

ProgramResult run_python(const std::string& program, const SandboxLimits& limits) {
  return run_in_sandbox(sandbox_command(limits), program, limits);
}

std::vector<ProgramResult> run_all(const std::vector<SandboxedProgram>& programs, int workers,
                                   const std::function<void(std::size_t finished)>& progress) {
  std::vector<ProgramResult> results(programs.size());
  std::vector<std::exception_ptr> errors(programs.size());
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> stop = false;
  std::mutex reporting;
  std::size_t finished = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < programs.size() && !stop; i = next++) {
      try {
        results[i] = run_python(programs[i].text, programs[i].limits);
        const std::lock_guard lock(reporting);
        ++finished;
        if (progress) progress(finished);
      } catch (...) {
        errors[i] = std::current_exception();
        stop = true;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    const auto count = std::min<std::size_t>(programs.size(), static_cast<std::size_t>(std::max(workers, 1)));
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back(work);
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return results;
}

}  // namespace sinkscope
