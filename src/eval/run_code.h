// Generated programs with their tests, run in the sandbox.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "eval/scoring.h"

namespace sinkscope {

/// Runs each program, a line break and its tests as one text, as Hugging Face's code_eval does, `workers` at
/// a time. progress(finished) follows each. Throws Error where no sandbox can be built (sandbox.h).
std::vector<CodeVerdict> run_code(std::span<const CodeProgram> programs, int workers,
                                  const std::function<void(std::size_t finished)>& progress = {});

}  // namespace sinkscope
