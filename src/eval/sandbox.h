// Running Python that a model wrote, where it can do no harm: bubblewrap's namespaces around it, limits
// within. docs/sandbox.md says what is isolated and what remains possible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sinkscope {

/// What one program may use. The defaults let every canonical solution of HumanEval and MBPP pass.
struct SandboxLimits {
  /// Wall clock, from the moment the interpreter begins with the program. Hugging Face's code_eval has 3,
  /// too.
  double seconds = 3;
  /// Address space of each process.
  std::int64_t memory_bytes = std::int64_t{512} << 20;
  /// Processes and threads at a time, the program's own first one included.
  int processes = 4;
  /// All files in /tmp together, and those in /dev/shm; so much is also the most that one file may have.
  std::int64_t file_bytes = std::int64_t{32} << 20;
  int open_files = 64;
  /// What it may print, on both streams together. Beyond that it is ended.
  std::int64_t output_bytes = std::int64_t{1} << 20;
};

enum class Outcome { passed, failed, timed_out, too_much_output, killed };

struct ProgramResult {
  Outcome outcome = Outcome::failed;
  /// One line: the exception and its message, or what ended the program; "passed" if it passed. Valid UTF-8.
  std::string reason;
  /// What it printed, at most output_bytes. Bytes as the program wrote them.
  std::string output;
  /// Wall clock of the program itself, without the start of sandbox and interpreter.
  double seconds = 0;
};

struct SandboxedProgram {
  std::string text;
  SandboxLimits limits;
};

/// Builds a sandbox once and looks from inside whether it holds. Throws Error saying what is missing
/// (bubblewrap, Python) or what the kernel would have to allow.
void require_sandbox();

/// Runs a program as code_eval does: exec() of the whole text with empty globals. It passes when that comes
/// back without an exception; a program that leaves early, by whichever way, does not. Ends every process of
/// it before returning. Throws Error when no sandbox can be built, UsageError for limits below what an
/// interpreter needs.
ProgramResult run_python(const std::string& program, const SandboxLimits& limits = {});

/// Runs all, `workers` at a time; results in the order of the programs. progress(finished) is called after
/// each, never twice at a time. Of several Errors the first program's is thrown, after all workers have
/// ended.
std::vector<ProgramResult> run_all(const std::vector<SandboxedProgram>& programs, int workers,
                                   const std::function<void(std::size_t finished)>& progress = {});

}  // namespace sinkscope
