#include "eval/scoring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <cmath>

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;
using OrderedJson = nlohmann::ordered_json;

Problem problem_of(std::int64_t index, const std::string& target) {
  Problem problem;
  problem.index = index;
  problem.document = {{"question", "q"}, {"answer", target}};
  problem.context = "q";
  problem.target = target;
  return problem;
}

TEST(Scoring, HasALineForEveryResponseAndFilter) {
  const Problem first = problem_of(0, "#### 18"), second = problem_of(1, "#### 5");
  const std::vector<Response> responses{{&first, "#### 18", {}}, {&second, "it is 5", {}}};
  const auto lines = score_responses(find_task("gsm8k"), responses);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[0]["filter"], "strict-match");
  EXPECT_EQ(lines[0]["exact_match"], 1.0);
  EXPECT_EQ(lines[2]["doc_id"], 1);
  EXPECT_EQ(lines[2]["exact_match"], 0.0);
  EXPECT_EQ(lines[3]["filtered_resps"][0], "5");
  EXPECT_EQ(lines[3]["exact_match"], 1.0);
  EXPECT_EQ(lines[3]["resps"][0][0], "it is 5");
}

TEST(Scoring, MeansHaveTheBinomialStandardError) {
  const Problem problem = problem_of(0, "#### 1");
  std::vector<Response> responses(10, Response{&problem, "#### 1", {}});
  for (int i = 0; i < 3; ++i) responses[static_cast<std::size_t>(i)].text = "#### 2";
  const OrderedJson results = aggregate("gsm8k", score_responses(find_task("gsm8k"), responses));
  EXPECT_EQ(results["alias"], "gsm8k");
  EXPECT_DOUBLE_EQ(results["exact_match,strict-match"].get<double>(), 0.7);
  EXPECT_DOUBLE_EQ(results["exact_match_stderr,strict-match"].get<double>(), std::sqrt(0.7 * 0.3 / 9));
}

TEST(Scoring, OneProblemHasNoStandardError) {
  const Problem problem = problem_of(0, "#### 1");
  const std::vector<Response> one{{&problem, "#### 1", {}}};
  EXPECT_TRUE(aggregate("gsm8k", score_responses(find_task("gsm8k"), one))["exact_match_stderr,strict-match"]
                  .is_null());
}

TEST(Scoring, ChoicesCountByLikelihoodAndByCharacter) {
  Problem problem = problem_of(0, "");
  problem.choices = {"a", "\xC3\xA4\xC3\xA4\xC3\xA4\xC3\xA4"};  // four characters, eight bytes
  problem.label = 1;
  const std::vector<Response> responses{{&problem, "", {-2, -6}}};
  const auto lines = score_responses(find_task("hellaswag"), responses);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0]["acc"], 0.0);
  EXPECT_EQ(lines[0]["acc_norm"], 1.0);  // -6 / 4 is above -2 / 1
  EXPECT_EQ(lines[0]["target"], 1);
}

TEST(Scoring, ProgramsAreHandedOverWithTheirTests) {
  Problem problem;
  problem.document = {
      {"prompt", "def f():\n"}, {"test", "def check(c):\n  assert c() == 1\n"}, {"entry_point", "f"}};
  std::vector<CodeProgram> seen;
  const CodeRunner runner = [&](std::span<const CodeProgram> programs) {
    seen.assign(programs.begin(), programs.end());
    return std::vector<CodeVerdict>{{true, "passed"}, {false, "AssertionError"}};
  };
  const std::vector<Response> responses{{&problem, "  return 1\n", {}}, {&problem, "  return 2\n", {}}};
  const auto lines = score_responses(find_task("humaneval"), responses, runner);
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].program, "def f():\n  return 1\n");
  EXPECT_EQ(seen[0].tests, "def check(c):\n  assert c() == 1\n\ncheck(f)");
  EXPECT_EQ(lines[0]["pass@1"], 1.0);
  EXPECT_EQ(lines[1]["pass@1"], 0.0);
  EXPECT_EQ(lines[1]["reason"], "AssertionError");
  EXPECT_THROW(score_responses(find_task("humaneval"), responses), Error);
}

TEST(Scoring, PuzzlesAreLookedAtBeforeAnybodyAnswers) {
  std::vector<Problem> problems{problem_of(0, ""), problem_of(1, "")};
  problems[0].document["input"] = "1,2,3";
  problems[1].document["input"] = "1,x,3";
  EXPECT_THAT(
      [&] { check_puzzles(find_task("countdown"), problems); },
      ThrowsMessage<Error>(HasSubstr("task countdown, problem 1: \"1,x,3\" is no countdown problem")));
  problems[1].document.erase("input");
  EXPECT_THAT([&] { check_puzzles(find_task("countdown"), problems); },
              ThrowsMessage<Error>(HasSubstr("problem 1: the problem has no text `input`")));
  EXPECT_THAT([&] { check_puzzles(find_task("sudoku"), problems); },
              ThrowsMessage<Error>(HasSubstr("problem 0: \"1,2,3\" is no 4 x 4 sudoku")));
  check_puzzles(find_task("gsm8k"), problems);
}

TEST(Scoring, APatternThatFailsNamesTheProblem) {
  const Task task = read_task({{"task", "mine"},
                               {"data", "mine.jsonl"},
                               {"doc_to_text", "{{q}}"},
                               {"doc_to_target", "{{a}}"},
                               {"filters", {{{"name", "slow"}, {"regex", "(a+)+$"}}}}},
                              "mine.json");
  const Problem problem = problem_of(7, "b");
  const std::vector<Response> responses{{&problem, std::string(200, 'a') + "!", {}}};
  EXPECT_THAT([&] { score_responses(task, responses); },
              ThrowsMessage<Error>(AllOf(HasSubstr("task mine, problem 7: "), HasSubstr("backtracks"))));
}

}  // namespace
}  // namespace sinkscope
