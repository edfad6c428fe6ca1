#include "eval/posing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <fstream>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using OrderedJson = nlohmann::ordered_json;

const std::filesystem::path shared_data = std::filesystem::path(SINKSCOPE_SHARED_DIR) / "data";

class Posing : public ::testing::Test {
 protected:
  Task task(nlohmann::ordered_json changes = nlohmann::ordered_json::object()) {
    nlohmann::ordered_json json{{"task", "mine"},
                                {"data", "mine.jsonl"},
                                {"doc_to_text", "Q: {{q}}\nA:"},
                                {"doc_to_target", "{{a}}"}};
    json.update(changes);
    Task read = read_task(json, "mine.json");
    read.folder = folder_.path();
    return read;
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_.path() / name) << content;
  }
  std::string error_of(const Task& of, const PosingOptions& options = {}) {
    try {
      pose_problems(of, options);
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Posing, IntroductionExamplesAndProblemFollowEachOther) {
  write("mine.jsonl", "{\"q\":\"1+1\",\"a\":\"2\"}\n\n{\"q\":\"2+2\",\"a\":\"4\"}\n");
  write("shots.jsonl", "{\"q\":\"0+1\",\"a\":\"1\"}\n{\"q\":\"0+2\",\"a\":\"2\"}\n");
  const auto posed =
      pose_problems(task({{"description", "Add.\n\n"},
                          {"fewshot", {{"count", 2}, {"data", "shots.jsonl"}, {"sampler", "first_n"}}}}),
                    {});
  ASSERT_EQ(posed.problems.size(), 2U);
  EXPECT_EQ(posed.original, 2U);
  EXPECT_EQ(posed.problems[1].context, "Add.\n\nQ: 0+1\nA: 1\n\nQ: 0+2\nA: 2\n\nQ: 2+2\nA:");
  EXPECT_EQ(posed.problems[1].target, "4");
  EXPECT_EQ(posed.problems[1].index, 1);
}

TEST_F(Posing, AnExampleOfTheSameFileIsNeverTheProblemItself) {
  std::string content;
  for (int i = 0; i < 30; ++i) content += "{\"q\":\"<" + std::to_string(i) + ">\",\"a\":\"x\"}\n";
  write("mine.jsonl", content);
  const auto posed = pose_problems(task({{"fewshot", {{"count", 20}, {"data", "mine.jsonl"}}}}), {});
  for (const Problem& problem : posed.problems) {
    const std::string own = "<" + std::to_string(problem.index) + ">";
    EXPECT_EQ(problem.context.find(own), problem.context.rfind(own));
    EXPECT_EQ(std::count(problem.context.begin(), problem.context.end(), '<'), 21);
  }
}

TEST_F(Posing, ALimitChangesNothingButTheNumber) {
  std::string content;
  for (int i = 0; i < 9; ++i) content += "{\"q\":\"<" + std::to_string(i) + ">\",\"a\":\"x\"}\n";
  write("mine.jsonl", content);
  const Task of = task({{"fewshot", {{"count", 3}, {"data", "mine.jsonl"}}}});
  PosingOptions limited;
  limited.limit = 2;
  const auto all = pose_problems(of, {}), few = pose_problems(of, limited);
  ASSERT_EQ(few.problems.size(), 2U);
  EXPECT_EQ(few.original, 9U);
  EXPECT_EQ(few.problems[1].context, all.problems[1].context);
}

TEST_F(Posing, ThePrefixIsSetApartOnlyWhereNoSpaceIs) {
  write("mine.jsonl", "{\"q\":\"1\",\"a\":\"2\"}\n");
  EXPECT_EQ(pose_problems(task({{"gen_prefix", "So"}}), {}).problems[0].gen_prefix, " So");
  EXPECT_EQ(pose_problems(task({{"gen_prefix", "\nSo"}}), {}).problems[0].gen_prefix, "\nSo");
  EXPECT_EQ(
      pose_problems(task({{"gen_prefix", "So"}, {"doc_to_text", "{{q}}\n"}}), {}).problems[0].gen_prefix,
      "So");
}

TEST_F(Posing, ChoicesAreCleanedAndTheLabelRead) {
  write("mine.jsonl", "{\"q\":\" a [title]b [x]\",\"c\":[\" one \",\"two\"],\"l\":\"1\"}\n");
  Task of = task({{"output_type", "multiple_choice"},
                  {"doc_to_text", "{{q}}"},
                  {"doc_to_choice", "c"},
                  {"doc_to_label", "l"},
                  {"clean", OrderedJson::array({OrderedJson::array({"\\A\\s+|\\s+\\Z", ""}),
                                                OrderedJson::array({" \\[title\\]", ". "}),
                                                OrderedJson::array({"\\[.*?\\]", ""})})}});
  const Problem problem = pose_problems(of, {}).problems[0];
  EXPECT_EQ(problem.context, "a. b ");
  EXPECT_THAT(problem.choices, ::testing::ElementsAre("one", "two"));
  EXPECT_EQ(problem.label, 1U);
}

TEST_F(Posing, FaultsNameFileAndLine) {
  write("mine.jsonl", "{\"q\":\"1\",\"a\":\"2\"}\n{\"q\":\"1\"}\n");
  EXPECT_THAT(error_of(task()), HasSubstr("mine.jsonl line 2: task mine: doc_to_target line 1: "));
  write("mine.jsonl", "{\"q\":\"1\",\"a\":\"2\"}\n[1]\n");
  EXPECT_THAT(error_of(task()), HasSubstr("mine.jsonl line 2 must hold a JSON object"));
  write("mine.jsonl", "");
  EXPECT_THAT(error_of(task()), HasSubstr("holds no problem"));
  EXPECT_THAT(error_of(task({{"data", "none.jsonl"}})), HasSubstr("there is no "));
  write("mine.jsonl", "{\"q\":\"1\",\"a\":\"2\"}\n");
  EXPECT_THAT(error_of(task({{"fewshot", {{"count", 1}, {"data", "mine.jsonl"}}}})),
              HasSubstr("holds 1 examples"));
  PosingOptions more;
  more.num_fewshot = 3;
  EXPECT_THAT(error_of(task(), more), HasSubstr("has no examples; --shots FILE names some"));
}

// The harness's own few-shot examples of the first problems (spec of the tasks).
TEST_F(Posing, Gsm8kHasTheHarnesssExamples) {
  if (!std::filesystem::exists(shared_data)) GTEST_SKIP() << "the data sets are not here";
  PosingOptions options;
  options.data_dir = shared_data;
  options.limit = 2;
  const auto posed = pose_problems(find_task("gsm8k"), options);
  EXPECT_EQ(posed.original, 1319U);
  EXPECT_TRUE(
      posed.problems[0].context.starts_with("Question: Jen and Tyler are gymnasts practicing flips."));
  EXPECT_TRUE(posed.problems[0].context.ends_with("farmers' market?\nAnswer:"));
  EXPECT_THAT(posed.problems[0].context, HasSubstr("\n#### "));
}

TEST_F(Posing, AllBuiltInTasksCanBePosed) {
  if (!std::filesystem::exists(shared_data)) GTEST_SKIP() << "the data sets are not here";
  PosingOptions options;
  options.data_dir = shared_data;
  options.limit = 3;
  for (const char* name : {"countdown", "gsm8k_cot", "gsm8k_cot_zeroshot", "hellaswag", "humaneval",
                           "humaneval_instruct", "math500", "mbpp", "minerva_math500", "sudoku"})
    EXPECT_EQ(pose_problems(find_task(name), options).problems.size(), 3U) << name;
  const Problem first = pose_problems(find_task("mbpp"), options).problems[0];
  EXPECT_THAT(first.context, HasSubstr("\r\n"));
  EXPECT_TRUE(first.context.ends_with("[BEGIN]\n"));
  EXPECT_EQ(first.document.at("task_id"), 11);
}

}  // namespace
}  // namespace sinkscope
