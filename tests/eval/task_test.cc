#include "eval/task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <fstream>

#include "eval/built_in_tasks.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;

nlohmann::ordered_json description() {
  return {{"task", "mine"}, {"data", "mine.jsonl"}, {"doc_to_text", "{{q}}"}, {"doc_to_target", "{{a}}"}};
}

std::string error_of(const nlohmann::ordered_json& json) {
  try {
    read_task(json, "mine.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Task, AFewMembersAreEnough) {
  const Task task = read_task(description(), "mine.json");
  EXPECT_EQ(task.name, "mine");
  EXPECT_EQ(task.kind, TaskKind::generate);
  EXPECT_EQ(task.metric, Metric::exact_match);
  ASSERT_EQ(task.filters.size(), 1U);
  EXPECT_EQ(task.filters[0].name, "none");
  EXPECT_EQ(task.shots.count, 0);
}

TEST(Task, AllBuiltInTasksCanBeRead) {
  for (const std::string& name : built_in_task_names()) EXPECT_EQ(find_task(name).name, name);
}

TEST(Task, FaultsAreNamed) {
  const auto with = [](const char* key, nlohmann::ordered_json value) {
    nlohmann::ordered_json json = description();
    json[key] = std::move(value);
    return error_of(json);
  };
  EXPECT_THAT(error_of({{"task", "mine"}}), HasSubstr("mine.json has no \"data\""));
  EXPECT_THAT(error_of(nlohmann::ordered_json::array()), HasSubstr("mine.json is an array"));
  EXPECT_THAT(with("prompt", "x"), HasSubstr("prompt"));
  EXPECT_THAT(with("task", "../x"), HasSubstr("must be a name of letters"));
  EXPECT_THAT(with("gen_len", 0), HasSubstr("gen_len is 0; an integer from 1"));
  EXPECT_THAT(with("metric", "bleu"), HasSubstr("metric is \"bleu\"; it should be one of exact_match"));
  EXPECT_THAT(with("until", {""}), HasSubstr("empty text"));
  EXPECT_THAT(with("filters", {{{"name", "a"}, {"regex", "("}}}), HasSubstr("filters[0].regex"));
  EXPECT_THAT(with("filters", {{{"name", "a"}}, {{"name", "a"}}}), HasSubstr("two filters named \"a\""));
  EXPECT_THAT(with("filters", {{{"name", "a"}, {"regex", "x"}, {"take", "raw"}}}), HasSubstr("both"));
  EXPECT_THAT(with("metric_name", "doc_id"), HasSubstr("for something else"));
  EXPECT_THAT(with("metric_name", "a,b"), HasSubstr("a name without a comma"));
  EXPECT_THAT(with("filters", {{{"name", "a,b"}}}), HasSubstr("a name without a comma"));
  EXPECT_THAT(with("metric", "code"), HasSubstr("has no \"program\""));
  EXPECT_THAT(with("task_ids", {1}), HasSubstr("first and the last"));
  EXPECT_THAT(with("time_limit", -1), HasSubstr("time_limit must be a number of seconds"));
  EXPECT_THAT(with("fewshot", {{"count", 1}, {"data", "x"}, {"task_ids", {1}}}), HasSubstr("first_n"));
}

TEST(Task, AFileIsReadWithItsFolder) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "mine.json") << description();
  EXPECT_EQ(find_task((folder.path() / "mine.json").string()).folder, folder.path());
  EXPECT_THROW(find_task((folder.path() / "other.json").string()), Error);
}

TEST(Task, AnUnknownNameListsThoseThereAre) {
  try {
    find_task("gsm9k");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("no task \"gsm9k\"; one of countdown, gsm8k"));
  }
}

}  // namespace
}  // namespace sinkscope
