#include "eval/sandbox_command.h"

#include <sinkscope/error.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <sstream>

#include "eval/python_driver.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using Arguments = std::vector<std::string>;

constexpr const char* nobody = "65534";
constexpr const char* python = "/usr/bin/python3";
// Debian's Python needs 14 MiB before it begins with a program.
constexpr std::int64_t least_memory = std::int64_t{32} << 20;
constexpr int least_open_files = 16;

// A program's path, from PATH.
std::string program(const std::string& name, const std::string& package) {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const fs::path file = fs::path(folder) / name; !folder.empty() && ::access(file.c_str(), X_OK) == 0)
      return file.string();
  throw Error(
      "generated code runs only in a sandbox, and the program {} that it needs is not installed; Debian's "
      "package {} "
      "has it (apt-get install {})",
      name, package, package);
}

void add(Arguments& to, std::initializer_list<std::string> more) { to.insert(to.end(), more); }

// /usr, and /bin, /lib and others as they are here: links into /usr or folders of their own.
void add_system(Arguments& to) {
  add(to, {"--ro-bind", "/usr", "/usr"});
  for (const char* name : {"/bin", "/sbin", "/lib", "/lib32", "/lib64"}) {
    if (fs::is_symlink(name))
      add(to, {"--symlink", fs::read_symlink(name).string(), name});
    else if (fs::is_directory(name))
      add(to, {"--ro-bind", name, name});
  }
  // What programs need of /etc to find their libraries.
  add(to, {"--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"});
  add(to, {"--ro-bind-try", "/etc/alternatives", "/etc/alternatives"});
}

void add_own_folders(Arguments& to, const SandboxLimits& limits) {
  const std::string size = std::to_string(limits.file_bytes);
  add(to, {"--proc", "/proc", "--dev", "/dev"});
  for (const char* folder : {"/tmp", "/dev/shm"})
    add(to, {"--perms", "1777", "--size", size, "--tmpfs", folder});
  // bubblewrap's own root and /dev are file systems in memory without a limit.
  add(to, {"--remount-ro", "/dev", "--remount-ro", "/"});
}

void add_environment(Arguments& to) {
  add(to, {"--clearenv", "--setenv", "PATH", "/usr/bin:/bin", "--setenv", "HOME", "/tmp", "--setenv", "LANG",
           "C.UTF-8"});
  // Sets in the same order every time: a score can be had again.
  add(to, {"--setenv", "PYTHONHASHSEED", "0", "--setenv", "PYTHONDONTWRITEBYTECODE", "1"});
  // Libraries shall not start a thread for each processor.
  add(to, {"--setenv", "OMP_NUM_THREADS", "1", "--setenv", "OPENBLAS_NUM_THREADS", "1"});
}

void add_limits(Arguments& to, const SandboxLimits& limits) {
  // CPU time is a second line behind the wall clock, for when nobody is left to watch that. The kernel counts
  // bubblewrap's own first process, too.
  const auto cpu_seconds = static_cast<std::int64_t>(std::ceil(limits.seconds)) + 2;
  add(to, {"prlimit", "--as=" + std::to_string(limits.memory_bytes),
           "--nproc=" + std::to_string(limits.processes + 1), "--fsize=" + std::to_string(limits.file_bytes),
           "--nofile=" + std::to_string(limits.open_files), "--cpu=" + std::to_string(cpu_seconds),
           "--core=0", "--"});
}

void check(const SandboxLimits& limits) {
  if (!(limits.seconds > 0 && limits.seconds <= 86400))
    throw UsageError("a program's time limit of {} s: more than 0 and at most 86400 would be right",
                     limits.seconds);
  if (limits.memory_bytes < least_memory || limits.processes < 1 || limits.open_files < least_open_files ||
      limits.file_bytes < 4096 || limits.output_bytes < 1)
    throw UsageError(
        "limits of the sandbox too small for an interpreter: at least {} bytes of memory, 1 process, {} open "
        "files, "
        "4096 bytes of files and 1 of output would be right",
        least_memory, least_open_files);
}

}  // namespace

std::vector<std::string> sandbox_command(const SandboxLimits& limits) {
  check(limits);
  program("prlimit", "util-linux");  // found by the sandbox's own PATH
  if (::access(python, X_OK) != 0)
    throw Error(
        "generated code needs {}, which is not there; Debian's package python3 has it (apt-get install "
        "python3)",
        python);
  Arguments command;
  // If memory runs short after all, the kernel shall end this one.
  add(command, {program("choom", "util-linux"), "-n", "1000", "--"});
  if (::geteuid() == 0)
    add(command, {program("setpriv", "util-linux"), std::string("--reuid=") + nobody,
                  std::string("--regid=") + nobody, "--clear-groups", "--"});
  add(command, {program("bwrap", "bubblewrap"), "--unshare-all", "--unshare-user", "--disable-userns",
                "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", nobody, "--gid", nobody,
                "--seccomp", std::to_string(filter_descriptor)});
  add_system(command);
  add_own_folders(command, limits);
  add_environment(command);
  add(command, {"--chdir", "/tmp", "--"});
  add_limits(command, limits);
  add(command, {python, "-s", "-c", python_driver});
  return command;
}

}  // namespace sinkscope
