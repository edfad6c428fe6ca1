#include "eval/sandbox_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sinkscope/error.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/descriptor.h"
#include "eval/python_driver.h"
#include "eval/sandbox_command.h"
#include "eval/system_call_filter.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using Clock = std::chrono::steady_clock;

// How long bubblewrap and the interpreter may take before they begin with the program: long, for a machine
// that is busy with other sandboxes.
constexpr std::chrono::seconds start_limit{60};
// More than "F" and its line.
constexpr std::size_t most_said = 1024;

[[noreturn]] void fail(const char* what) { throw Error("the sandbox: {}: {}", what, std::strerror(errno)); }

Descriptor program_file(const std::string& program) {
  Descriptor file(::memfd_create("program", MFD_CLOEXEC));
  if (file.number() < 0) fail("no memory for the program");
  for (std::size_t done = 0; done < program.size();) {
    const ssize_t count = ::write(file.number(), program.data() + done, program.size() - done);
    if (count < 0) fail("cannot write the program");
    done += static_cast<std::size_t>(count);
  }
  ::lseek(file.number(), 0, SEEK_SET);
  return file;
}

std::string new_secret() {
  std::string secret(verdict_secret_bytes, '\0');
  if (::getrandom(secret.data(), secret.size(), 0) != verdict_secret_bytes) fail("no random bytes");
  return secret;
}

// The two ends of a pipe or of a connection.
struct Ends {
  Descriptor ours, theirs;
};

Ends output_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("no pipe");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

Ends conversation() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("no socket");
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

// Reads what is there. False at the end of the stream.
bool read_available(int descriptor, std::string& into, std::size_t at_most) {
  std::array<char, 65536> piece;
  while (into.size() < at_most) {
    const ssize_t count = ::read(descriptor, piece.data(), std::min(piece.size(), at_most - into.size()));
    if (count > 0)
      into.append(piece.data(), static_cast<std::size_t>(count));
    else if (count == 0 || (errno != EINTR && errno != EAGAIN))
      return false;
    else if (errno == EAGAIN)
      return true;
  }
  return true;
}

class SandboxProcess {
 public:
  SandboxProcess(const std::vector<std::string>& command, const std::string& program)
      : secret_(new_secret()) {
    Ends output = output_pipe(), talk = conversation();
    const Descriptor text = program_file(program), filter = system_call_filter();
    if (::send(talk.ours.number(), secret_.data(), secret_.size(), MSG_NOSIGNAL) != verdict_secret_bytes)
      fail("cannot speak to the driver");
    // In the child every number up to filter_descriptor is taken in turn, so none of these may be one of
    // them.
    spawn(command, {text.number(), output.theirs.number(), output.theirs.number(), talk.theirs.number(),
                    filter.number()});
    output_ = std::move(output.ours);
    talk_ = std::move(talk.ours);
    ended_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process_, 0)));
    if (ended_.number() < 0) {
      end();
      fail("cannot watch a process");
    }
  }

  ~SandboxProcess() { end(); }
  SandboxProcess(const SandboxProcess&) = delete;
  SandboxProcess& operator=(const SandboxProcess&) = delete;

  ProgramResult watch(const SandboxLimits& limits);

 private:
  void spawn(const std::vector<std::string>& command, std::array<int, 5> descriptors);
  void wait_for_news(Clock::time_point until);
  std::optional<ProgramResult> verdict(const SandboxLimits& limits);
  ProgramResult exit_verdict();
  void reap();
  void end();

  std::string secret_;
  pid_t process_ = -1;
  Descriptor output_, talk_, ended_;
  std::string printed_, said_;
  bool output_open_ = true, talk_open_ = true, running_ = true;
  int status_ = 0;
};

// A copy of a descriptor with a number that the child's own do not meet.
Descriptor above(int descriptor, int least) {
  Descriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, least));
  if (copy.number() < 0) fail("no file descriptor");
  return copy;
}

void SandboxProcess::spawn(const std::vector<std::string>& command, std::array<int, 5> descriptors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  std::array<Descriptor, 5> copies;
  for (std::size_t i = 0; i < descriptors.size(); ++i) {
    copies[i] = above(descriptors[i], filter_descriptor + 1);
    posix_spawn_file_actions_adddup2(&actions, copies[i].number(), static_cast<int>(i));
  }
  // What else this process has open is none of the program's business.
  posix_spawn_file_actions_addclosefrom_np(&actions, filter_descriptor + 1);
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const int failure = ::posix_spawn(&process_, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) throw Error("{} could not be started: {}", command[0], std::strerror(failure));
}

void SandboxProcess::reap() {
  while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
  }
  running_ = false;
}

// Ends the sandbox: with bubblewrap goes the first process of its namespace, and with that one all others.
void SandboxProcess::end() {
  if (!running_) return;
  ::kill(process_, SIGKILL);
  reap();
}

// Until something is read, the process has ended, or the time is over.
void SandboxProcess::wait_for_news(Clock::time_point until) {
  std::array<pollfd, 3> watched{{{output_open_ ? output_.number() : -1, POLLIN, 0},
                                 {talk_open_ ? talk_.number() : -1, POLLIN, 0},
                                 {ended_.number(), POLLIN, 0}}};
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count() + 1;
  ::poll(watched.data(), watched.size(), static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000)));
  if (watched[2].revents != 0 && running_) reap();
}

std::string one_line(const std::string& text) {
  std::string line = replace_invalid_utf8(text);
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return line;
}

// What the driver said of the program, if it has.
std::optional<ProgramResult> SandboxProcess::verdict(const SandboxLimits& limits) {
  if (printed_.size() > static_cast<std::size_t>(limits.output_bytes))
    return ProgramResult{
        Outcome::too_much_output, fmt::format("more than {} bytes of output", limits.output_bytes), {}, 0};
  const std::string success = "SP" + secret_;
  if (said_ == success) return ProgramResult{Outcome::passed, "passed", {}, 0};
  if (said_.size() > 2 && said_[1] == 'F')
    return ProgramResult{Outcome::failed, one_line(said_.substr(2)), {}, 0};
  if (said_.size() > 2 && !success.starts_with(said_))
    return ProgramResult{Outcome::failed, "wrote to the descriptor of the verdict", {}, 0};
  return std::nullopt;
}

// The interpreter went without a word. bubblewrap's status is the program's, 128 + its number for a signal.
ProgramResult SandboxProcess::exit_verdict() {
  const int status = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  if (status > 128 && status < 128 + NSIG)
    return {Outcome::killed,
            fmt::format("killed by signal {} ({})", status - 128, ::strsignal(status - 128)),
            {},
            0};
  return {Outcome::failed, fmt::format("left with status {} before its tests were over", status), {}, 0};
}

ProgramResult SandboxProcess::watch(const SandboxLimits& limits) {
  const auto time =
      std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  const auto most_printed = static_cast<std::size_t>(limits.output_bytes) + 1;
  Clock::time_point began = Clock::now(), until = began + start_limit;
  std::optional<ProgramResult> result;
  for (bool begun = false; !result;) {
    wait_for_news(until);
    const bool was_running = running_;
    talk_open_ = talk_open_ && read_available(talk_.number(), said_, most_said);
    output_open_ = output_open_ && read_available(output_.number(), printed_, most_printed);
    if (!begun && !said_.empty() && said_[0] == 'S') {
      begun = true;
      began = Clock::now();
      until = began + time;
    }
    if (begun) result = verdict(limits);
    if (result) break;
    if (!was_running && !begun) throw Error("no sandbox could be built: {}", one_line(printed_));
    if (!was_running) result = exit_verdict();
    if (Clock::now() < until || result) continue;
    if (!begun)
      throw Error("no sandbox could be built within {} s: {}", start_limit.count(), one_line(printed_));
    result =
        ProgramResult{Outcome::timed_out, fmt::format("still running after {} s", limits.seconds), {}, 0};
  }
  result->seconds = std::chrono::duration<double>(Clock::now() - began).count();
  end();
  read_available(output_.number(), printed_, most_printed);
  printed_.resize(std::min(printed_.size(), static_cast<std::size_t>(limits.output_bytes)));
  result->output = std::move(printed_);
  return *result;
}

}  // namespace

ProgramResult run_in_sandbox(const std::vector<std::string>& command, const std::string& program,
                             const SandboxLimits& limits) {
  return SandboxProcess(command, program).watch(limits);
}

}  // namespace sinkscope
