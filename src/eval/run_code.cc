#include "eval/run_code.h"

#include "eval/sandbox.h"

namespace sinkscope {

std::vector<CodeVerdict> run_code(std::span<const CodeProgram> programs, int workers,
                                  const std::function<void(std::size_t finished)>& progress) {
  std::vector<SandboxedProgram> sandboxed;
  for (const CodeProgram& program : programs) {
    SandboxedProgram& one = sandboxed.emplace_back();
    one.text = program.program + "\n" + program.tests;
    one.limits.seconds = program.time_limit;
  }
  std::vector<CodeVerdict> verdicts;
  for (const ProgramResult& result : run_all(sandboxed, workers, progress))
    verdicts.push_back({result.outcome == Outcome::passed, result.reason});
  return verdicts;
}

}  // namespace sinkscope
