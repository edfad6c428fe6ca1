// One sandbox as a process: started, watched, ended.
#pragma once

#include <string>

#include "eval/sandbox.h"

namespace sinkscope {

/// Runs the program by the command. See run_python.
ProgramResult run_in_sandbox(const std::vector<std::string>& command, const std::string& program,
                             const SandboxLimits& limits);

}  // namespace sinkscope
