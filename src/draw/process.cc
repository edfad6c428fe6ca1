#include "draw/process.h"

#include <fcntl.h>
#include <sinkscope/error.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sinkscope {
namespace {

struct Actions {
  posix_spawn_file_actions_t list;
  Actions() { posix_spawn_file_actions_init(&list); }
  ~Actions() { posix_spawn_file_actions_destroy(&list); }
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;
};

}  // namespace

MemoryFile::MemoryFile() : descriptor_(::memfd_create("sinkscope", 0)) {
  if (descriptor_.number() < 0) throw Error("no memory for a file of a picture: {}", std::strerror(errno));
}

std::string MemoryFile::path() const { return "/proc/self/fd/" + std::to_string(descriptor_.number()); }

void MemoryFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor_.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("no memory for a file of a picture: {}", std::strerror(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

std::string MemoryFile::content() const {
  std::string content;
  std::array<char, 65536> piece;
  for (;;) {
    const ssize_t count =
        ::pread(descriptor_.number(), piece.data(), piece.size(), static_cast<off_t>(content.size()));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw Error("a file of a picture cannot be read: {}", std::strerror(errno));
    if (count == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(count));
  }
}

// What the process says goes to files: pipes would have to be emptied in turns.
ProcessResult run_process(const std::vector<std::string>& arguments, const std::string& folder) {
  const MemoryFile output, errors;
  Actions actions;
  posix_spawn_file_actions_addopen(&actions.list, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions.list, 1, output.path().c_str(), O_WRONLY | O_APPEND, 0);
  posix_spawn_file_actions_addopen(&actions.list, 2, errors.path().c_str(), O_WRONLY | O_APPEND, 0);
  if (!folder.empty()) posix_spawn_file_actions_addchdir_np(&actions.list, folder.c_str());
  std::vector<std::string> copies = arguments;
  std::vector<char*> pointers;
  for (std::string& argument : copies) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  pid_t process = -1;
  const int failure = posix_spawnp(&process, pointers[0], &actions.list, nullptr, pointers.data(), environ);
  ProcessResult result;
  if (failure == ENOENT) {
    result.found = result.succeeded = false;
    return result;
  }
  if (failure != 0) throw Error("{} could not be started: {}", arguments[0], std::strerror(failure));
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  result.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  result.output = output.content();
  result.errors = errors.content();
  return result;
}

std::string last_line(const std::string& said) {
  std::string last;
  for (std::size_t begin = 0; begin < said.size();) {
    const std::size_t end = std::min(said.find('\n', begin), said.size());
    const std::string line = said.substr(begin, end - begin);
    if (line.find_first_not_of(" ^\t\r") != std::string::npos) last = line;
    begin = end + 1;
  }
  return last.empty() ? "it said nothing" : last;
}

}  // namespace sinkscope
