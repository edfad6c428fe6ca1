// Programs that code benchmarks run, put together as lm-evaluation-harness does (revision 4e7e0d4), and
// pass@k.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// What code_eval executes: candidate + "\n" + tests.
std::string code_eval_program(std::string_view candidate, std::string_view tests);

/// humaneval: prompt + completion, then the problem's test and the call check(entry_point).
std::string humaneval_program(std::string_view prompt, std::string_view completion, std::string_view test,
                              std::string_view entry_point);

/// humaneval_instruct: the same with the answer's text before its first ``` instead of all of it.
std::string humaneval_instruct_program(std::string_view prompt, std::string_view answer,
                                       std::string_view test, std::string_view entry_point);

/// mbpp: the answer as it is, then the asserts, one a line.
std::string mbpp_program(std::string_view answer, const std::vector<std::string>& asserts);

/// mbpp_instruct: the code of the answer's first fenced block, then the asserts.
std::string mbpp_instruct_program(std::string_view answer, const std::vector<std::string>& asserts);

/// First match of ```(?:\w+)?\n?(.*?)\n?``` (DOTALL) in "```" + answer; empty without one. The harness has
/// opened the fence in its prompt, so an answer that begins with "def" on the fence's own line loses that
/// word as a language: kept, for scores comparable with its.
std::string first_code_block(std::string_view answer);

/// The unbiased estimate of pass@k from `samples` programs of which `correct` passed:
/// 1 - C(samples - correct, k) / C(samples, k). Throws UsageError unless 0 <= correct <= samples and 1 <= k
/// <= samples.
double pass_at_k(std::int64_t samples, std::int64_t correct, std::int64_t k);

}  // namespace sinkscope
