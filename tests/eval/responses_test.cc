#include "eval/responses.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

// The expected values are the harness's: Python's re, its group_select and its exact_match.
TEST(Responses, EndBeforeTheFirstStop) {
  EXPECT_EQ(cut_at("18 Question: next", {"Question:", "</s>"}), "18 ");
  EXPECT_EQ(cut_at("a</s>b Question:", {"Question:", "</s>"}), "a");
  EXPECT_EQ(cut_at("18", {"Question:"}), "18");
}

TEST(Responses, StrictTakesTheFirstAndFlexibleTheLastNumber) {
  const Task task = find_task("gsm8k");
  const std::string response = "16 - 7 = 9 eggs.\n9 * 2 = $18.\n#### 18\n#### 99 or 7";
  EXPECT_EQ(filtered(task.filters[0], response), "18");
  EXPECT_EQ(filtered(task.filters[1], response), "7");
  EXPECT_EQ(filtered(task.filters[0], "the answer is 18"), "[invalid]");
  EXPECT_EQ(filtered(task.filters[1], "no number"), "[invalid]");
  EXPECT_EQ(filtered(task.filters[1], "It costs $1,234.50."), "$1,234.50.");
}

TEST(Responses, AnswersOfGsm8kAreComparedAsTheHarnessDoes) {
  const Task task = find_task("gsm8k");
  const std::string target = "She makes 9 * 2 = $18 every day.\n#### 18";
  EXPECT_TRUE(is_exact_match(task, "18", target));
  EXPECT_TRUE(is_exact_match(task, "$18.", target));
  EXPECT_FALSE(is_exact_match(task, "18.00", target));  // one harness says so, another does not
  EXPECT_FALSE(is_exact_match(task, "[invalid]", target));
  EXPECT_TRUE(is_exact_match(task, "1,800", "#### 1800"));
}

TEST(Responses, ThoughtsEndWithTheAnswer) {
  const Task task = find_task("gsm8k_cot");
  EXPECT_EQ(filtered(task.filters[0], "So 5 + 1. The answer is 6. Q: x"), "6.");
  EXPECT_TRUE(is_exact_match(task, "6.", "6"));
}

TEST(Responses, CodeEndsAtItsFence) {
  ResponseFilter fence;
  fence.kind = ResponseFilter::Kind::before_fence;
  EXPECT_EQ(filtered(fence, "  return 1\n```\nThat is it"), "  return 1\n");
  EXPECT_EQ(filtered(fence, "  return 1\n"), "  return 1\n");
}

TEST(Responses, CaseIsIgnoredBeyondAscii) {
  Task task = find_task("gsm8k");
  EXPECT_TRUE(is_exact_match(task, "\xC3\x84PFEL", "\xC3\xA4pfel"));
  task.ignore_case = false;
  EXPECT_FALSE(is_exact_match(task, "A", "a"));
}

TEST(Responses, TextsThatAreNotUtf8AreNoMatch) {
  EXPECT_FALSE(is_exact_match(find_task("gsm8k"), "\xff", "#### 1"));
}

}  // namespace
}  // namespace sinkscope
