#include "eval/code_verdict.h"

#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

TEST(CodeVerdict, HumanEvalRunsPromptAndCompletionAndThenTheTest) {
  EXPECT_EQ(humaneval_program("def f():\n", "    return 1\n", "def check(c):\n    assert c() == 1\n", "f"),
            "def f():\n    return 1\n\ndef check(c):\n    assert c() == 1\n\ncheck(f)");
}

TEST(CodeVerdict, HumanEvalInstructTakesTheAnswerBeforeItsFence) {
  EXPECT_EQ(humaneval_instruct_program("P", "body\n```\nmore ```", "T", "f"), "Pbody\n\nT\ncheck(f)");
  EXPECT_EQ(humaneval_instruct_program("P", "body", "T", "f"), "Pbody\nT\ncheck(f)");
  EXPECT_EQ(humaneval_instruct_program("P", "```", "T", "f"), "P\nT\ncheck(f)");
}

TEST(CodeVerdict, MbppRunsTheAnswerAndThenTheAsserts) {
  EXPECT_EQ(mbpp_program("a = 1", {"assert a", "assert a == 1", "assert a < 2"}),
            "a = 1\nassert a\nassert a == 1\nassert a < 2");
}

// As Python's re.findall(r"```(?:\w+)?\n?(.*?)\n?```", "```" + answer, re.DOTALL)[0].
TEST(CodeVerdict, FirstCodeBlock) {
  EXPECT_EQ(first_code_block("\ndef f():\n  return 1\n```\nand ```x```"), "def f():\n  return 1");
  EXPECT_EQ(first_code_block("python\na\n```"), "a");
  EXPECT_EQ(first_code_block("def f(): pass\n```"), " f(): pass");  // the harness's own loss
  EXPECT_EQ(first_code_block("\n\na\n\n```"), "\na\n");
  EXPECT_EQ(first_code_block("```"), "");
  EXPECT_EQ(first_code_block("\n```"), "");
  EXPECT_EQ(first_code_block("\na = 1\n"), "");
  EXPECT_EQ(first_code_block(""), "");
  EXPECT_EQ(first_code_block("größe\na```"), "a");
  EXPECT_EQ(mbpp_instruct_program("\na = 1\n```\ntext", {"assert a"}), "a = 1\nassert a");
}

TEST(PassAtK, IsTheShareOfDrawsWithASuccess) {
  EXPECT_DOUBLE_EQ(pass_at_k(1, 1, 1), 1);
  EXPECT_DOUBLE_EQ(pass_at_k(1, 0, 1), 0);
  EXPECT_DOUBLE_EQ(pass_at_k(10, 3, 1), 0.3);
  EXPECT_NEAR(pass_at_k(5, 2, 2), 1 - 3.0 / 10, 1e-15);  // C(3,2) of C(5,2)
  EXPECT_NEAR(pass_at_k(6, 2, 3), 1 - 4.0 / 20, 1e-15);  // C(4,3) of C(6,3)
  EXPECT_DOUBLE_EQ(pass_at_k(5, 3, 3), 1);               // no three of two failures
  EXPECT_NEAR(pass_at_k(200, 1, 100), 0.5, 1e-12);
  EXPECT_NEAR(pass_at_k(100000, 1, 100), 0.001, 1e-12);
}

TEST(PassAtK, ImpossibleCountsAreRefused) {
  EXPECT_THROW(pass_at_k(5, 6, 1), UsageError);
  EXPECT_THROW(pass_at_k(5, -1, 1), UsageError);
  EXPECT_THROW(pass_at_k(5, 1, 0), UsageError);
  EXPECT_THROW(pass_at_k(5, 1, 6), UsageError);
}

}  // namespace
}  // namespace sinkscope
