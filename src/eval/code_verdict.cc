#include "eval/code_verdict.h"

#include <sinkscope/error.h>

#include "text/python_regex.h"

namespace sinkscope {
namespace {

std::string joined(std::string_view a, std::string_view b) { return std::string(a).append(b); }

std::string humaneval_tests(std::string_view test, std::string_view entry_point) {
  return fmt::format("{}\ncheck({})", test, entry_point);
}

std::string mbpp_tests(const std::vector<std::string>& asserts) {
  return fmt::format("{}", fmt::join(asserts, "\n"));
}

}  // namespace

std::string code_eval_program(std::string_view candidate, std::string_view tests) {
  return fmt::format("{}\n{}", candidate, tests);
}

std::string humaneval_program(std::string_view prompt, std::string_view completion, std::string_view test,
                              std::string_view entry_point) {
  return code_eval_program(joined(prompt, completion), humaneval_tests(test, entry_point));
}

std::string humaneval_instruct_program(std::string_view prompt, std::string_view answer,
                                       std::string_view test, std::string_view entry_point) {
  return humaneval_program(prompt, answer.substr(0, answer.find("```")), test, entry_point);
}

std::string mbpp_program(std::string_view answer, const std::vector<std::string>& asserts) {
  return code_eval_program(answer, mbpp_tests(asserts));
}

std::string mbpp_instruct_program(std::string_view answer, const std::vector<std::string>& asserts) {
  return mbpp_program(first_code_block(answer), asserts);
}

std::string first_code_block(std::string_view answer) {
  static const PythonRegex block(R"((?s)```(?:\w+)?\n?(.*?)\n?```)", "the pattern of code blocks");
  const std::vector<std::vector<std::string>> found = block.find_all(joined("```", answer));
  return found.empty() ? "" : found.front().front();
}

double pass_at_k(std::int64_t samples, std::int64_t correct, std::int64_t k) {
  if (correct < 0 || correct > samples || k < 1 || k > samples)
    throw UsageError(
        "pass@{} of {} programs of which {} passed: k from 1 to the number of programs would be right", k,
        samples, correct);
  // C(n - c, k) / C(n, k) as the product over the last c of n of (1 - k / i).
  if (samples - correct < k) return 1;
  double all_fail = 1;
  for (std::int64_t i = samples - correct + 1; i <= samples; ++i)
    all_fail *= 1 - static_cast<double>(k) / static_cast<double>(i);
  return 1 - all_fail;
}

}  // namespace sinkscope
