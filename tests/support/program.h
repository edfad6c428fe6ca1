// Runs the built program as a user would.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace sinkscope::testing {

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when killed
  std::string out;
  std::string error;
  long peak_kib = 0;  // resident memory
};

struct ProgramOptions {
  std::function<void()> in_child = {};        // before the program starts
  std::function<void(pid_t)> meanwhile = {};  // in the parent, while it runs
  std::filesystem::path program = SINKSCOPE_PROGRAM;
};

inline ProgramResult run_program(const std::vector<std::string>& arguments,
                                 const ProgramOptions& options = {}) {
  const TemporaryFolder folder;
  const std::string out = folder / "out", error = folder / "error";
  const pid_t child = ::fork();
  if (child == 0) {
    const auto redirect = [](const std::string& path, int to) {
      ::dup2(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), to);
    };
    redirect(out, STDOUT_FILENO);
    redirect(error, STDERR_FILENO);
    if (options.in_child) options.in_child();
    std::vector<char*> argv{const_cast<char*>(options.program.c_str())};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  if (options.meanwhile) options.meanwhile(child);
  ProgramResult result;
  int status = 0;
  struct rusage usage {};
  ::wait4(child, &status, 0, &usage);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = content_of(out);
  result.error = content_of(error);
  result.peak_kib = usage.ru_maxrss;
  return result;
}

}  // namespace sinkscope::testing
