#include "draw/gnuplot.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

namespace sinkscope {
namespace {

// Two ends of a pipe, closed when they go.
class Pipe {
 public:
  Pipe() {
    if (pipe2(ends_.data(), O_CLOEXEC) != 0) throw Error("no pipe could be made: {}", std::strerror(errno));
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  int end(std::size_t i) const { return ends_[i]; }
  void close_end(std::size_t i) {
    if (ends_[i] >= 0) ::close(ends_[i]);
    ends_[i] = -1;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

pid_t start(Pipe& errors, const std::string& script_file) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, errors.end(1), 2);
  std::string program = "gnuplot", file = script_file;
  std::array<char*, 3> arguments{program.data(), file.data(), nullptr};
  pid_t process = -1;
  const int failure = posix_spawnp(&process, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure == ENOENT)
    throw Error("gnuplot is not installed, and it draws the pictures; Debian's package gnuplot-nox has it");
  if (failure != 0) throw Error("gnuplot could not be started: {}", std::strerror(failure));
  return process;
}

// All that the process says, and then its exit status.
std::string wait_for(pid_t process, Pipe& errors, int& status) {
  errors.close_end(1);
  std::string said;
  std::array<char, 4096> piece;
  for (ssize_t count = 0; (count = ::read(errors.end(0), piece.data(), piece.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    said.append(piece.data(), static_cast<std::size_t>(count));
  }
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return said;
}

// A script on the disk for as long as gnuplot reads it.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& script) {
    descriptor_ = ::memfd_create("gnuplot", 0);
    if (descriptor_ < 0) throw Error("no memory for a script of gnuplot: {}", std::strerror(errno));
    for (std::size_t done = 0; done < script.size();) {
      const ssize_t count = ::write(descriptor_, script.data() + done, script.size() - done);
      if (count < 0) throw Error("cannot write a script of gnuplot: {}", std::strerror(errno));
      done += static_cast<std::size_t>(count);
    }
  }
  ~ScriptFile() { ::close(descriptor_); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_ = -1;
};

// The line of gnuplot's message that says what is wrong: the last one that is not empty.
std::string reason(const std::string& said) {
  std::string last;
  for (std::size_t begin = 0; begin < said.size();) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    if (line.find_first_not_of(" ^\t") != std::string::npos) last = line;
    begin = end + 1;
  }
  return last.empty() ? "it said nothing" : last;
}

}  // namespace

void run_gnuplot(const std::string& script, const std::string& what) {
  const ScriptFile file(script);
  Pipe errors;
  int status = 0;
  const pid_t process = start(errors, file.path());
  const std::string said = wait_for(process, errors, status);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
    throw Error("gnuplot did not draw {}: {}", what, reason(said));
}

void require_gnuplot() { run_gnuplot("", "nothing"); }

std::string gnuplot_quoted(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? "''" : std::string(1, c);
  return quoted + "'";
}

}  // namespace sinkscope
