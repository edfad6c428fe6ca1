// NumPy as the judge of what we write, and as the writer of what we read.
#pragma once

#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "support/temporary_folder.h"

namespace sinkscope::test {

struct ProgramResult {
  int status = 0;
  std::string output;  ///< stdout and stderr
};

inline ProgramResult run_program(const std::string& command) {
  ProgramResult result;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {-1, "popen failed"};
  char buffer[4096];
  while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
    result.output.append(buffer, count);
  result.status = ::pclose(pipe);
  return result;
}

/// A Python that can import numpy; none where there is none on this machine.
inline std::optional<std::string> python_with_numpy() {
  for (const char* python : {"python3", "/usr/bin/python3"})
    if (run_program(std::string(python) + " -c 'import numpy'").status == 0) return python;
  return std::nullopt;
}

/// Runs `script` in `folder`.
inline ProgramResult run_python(const std::string& python, const testing::TemporaryFolder& folder,
                                const std::string& script) {
  testing::write_file(folder / "script.py", "import numpy as np\n" + script);
  return run_program("cd '" + folder.path().string() + "' && " + python + " script.py");
}

}  // namespace sinkscope::test

#define REQUIRE_NUMPY(python)                                                       \
  const std::optional<std::string> python = ::sinkscope::test::python_with_numpy(); \
  if (!python) GTEST_SKIP() << "no python3 with numpy on this machine"
