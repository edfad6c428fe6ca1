// The command line that builds a sandbox and starts the interpreter in it.
#pragma once

#include <string>
#include <vector>

#include "eval/sandbox.h"

namespace sinkscope {

/// Descriptors as the command finds them: 0 the program, 1 and 2 its output, 3 the conversation with the
/// driver, 4 the filter of system calls.
inline constexpr int conversation_descriptor = 3;
inline constexpr int filter_descriptor = 4;

/// Program and arguments. As root the command begins by becoming nobody: the kernel counts no processes of
/// root. Throws Error naming the Debian package when a program is not in PATH, UsageError for limits too
/// small.
std::vector<std::string> sandbox_command(const SandboxLimits& limits);

}  // namespace sinkscope
