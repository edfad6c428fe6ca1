// The solutions that HumanEval and MBPP come with, scored as answers of a model.
#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <filesystem>
#include <string>
#include <vector>

#include "eval/posing.h"
#include "eval/run_code.h"
#include "eval/sandbox.h"

namespace sinkscope {
namespace {

class Canonical : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(data_)) GTEST_SKIP() << "no " << data_;
    try {
      require_sandbox();
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  // What does not pass when the member `solution` is the answer, as "NUMBER: REASON".
  std::vector<std::string> failures(Task task, const std::string& solution, double time_limit) const {
    PosingOptions options;
    options.data_dir = data_;
    options.num_fewshot = 0;
    task.time_limit = time_limit;
    const PosedTask posed = pose_problems(task, options);
    std::vector<Response> responses;
    for (const Problem& problem : posed.problems)
      responses.push_back({&problem, problem.document.at(solution).get<std::string>(), {}});
    const CodeRunner runner = [](std::span<const CodeProgram> programs) { return run_code(programs, 2); };
    std::vector<std::string> failed;
    for (const auto& line : score_responses(task, responses, runner))
      if (line.at(task.metric_name) != 1.0)
        failed.push_back(line.at("doc").at("task_id").dump() + ": " + line.at("reason").get<std::string>());
    return failed;
  }

  std::filesystem::path data_ = std::filesystem::path(SINKSCOPE_SHARED_DIR) / "data";
};

// Task 123 of MBPP needs most of the usual three seconds on an idle machine.
constexpr double patient = 20;

TEST_F(Canonical, HumanEval) {
  EXPECT_THAT(failures(find_task("humaneval"), "canonical_solution", patient), ::testing::IsEmpty());
}

TEST_F(Canonical, Mbpp) {
  // Task 367 needs a set-up that code_eval leaves out.
  EXPECT_THAT(failures(find_task("mbpp"), "code", patient),
              ::testing::ElementsAre("367: NameError: name 'root' is not defined"));
}

}  // namespace
}  // namespace sinkscope
