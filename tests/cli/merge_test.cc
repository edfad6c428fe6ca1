// Shards with something amiss: the whole appears as it should or not at all, and the shards stay as they are.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

// Two shards of a run of three samples, or of an evaluation of four problems with two cells.
class Merge : public ::testing::Test {
 protected:
  void run(const std::vector<std::string>& more = {}) {
    shards({"run", "sums-llada", "--prompt", "a", "--prompt", "b", "--prompt", "c", "--gen-len", "8",
            "--steps", "4", "--block-len", "8"},
           more);
  }
  void eval() {
    shards({"eval", "sums-llama", "--tasks",
            std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/task.json", "--limit", "4",
            "--sink-top-k", "0,1", "--gen-len", "2"},
           {});
  }
  fs::path shard(int index) const { return folder / ("part.shard-" + std::to_string(index) + "-of-2"); }
  testing::ProgramResult merge(const std::string& out = "whole") const {
    return run_program({"merge", shard(0), shard(1), "--run-dir", folder / out, "--quiet"});
  }
  // What merging says, that nothing is left, and what was there stays.
  std::string refusal() const {
    const auto result = merge();
    EXPECT_NE(result.status, 0);
    EXPECT_EQ(testing::names_in(folder.path()),
              (std::vector<std::string>{"part.shard-0-of-2", "part.shard-1-of-2"}));
    return result.error;
  }
  void change(const fs::path& file, const std::function<void(json&)>& action) const {
    json value = json::parse(content_of(file));
    action(value);
    write_file(file, value.dump());
  }

  TemporaryFolder folder;

 private:
  void shards(std::vector<std::string> arguments, const std::vector<std::string>& more) {
    arguments.insert(arguments.end(), more.begin(), more.end());
    arguments.insert(arguments.end(), {"--quiet", "--run-dir", folder / "part", "--shard", "0/2"});
    for (const char* part : {"0/2", "1/2"}) {
      arguments.back() = part;
      const auto result = run_program(arguments);
      ASSERT_EQ(result.status, 0) << result.error;
    }
  }
};

TEST_F(Merge, SamplesThatWereLostAreMissed) {
  run();
  const fs::path lines = shard(1) / "samples.jsonl";
  const std::string whole = content_of(lines);
  write_file(lines, whole.substr(0, whole.size() - 20));
  EXPECT_THAT(refusal(), HasSubstr("part.shard-1-of-2/samples.jsonl: the last line is torn"));
  write_file(lines, "");
  EXPECT_THAT(refusal(), HasSubstr("has no line for sample_00001.npz"));
  write_file(lines, whole);
  fs::remove(shard(1) / "sample_00001.npz");
  EXPECT_THAT(refusal(), HasSubstr("sample_00001.npz is missing, and "));
  write_file(lines, "");
  EXPECT_THAT(refusal(), HasSubstr("the shards hold no sample 1; "));
}

TEST_F(Merge, DeviationsComeAlong) {
  run({"--threshold", "0.5", "--deviation"});
  ASSERT_EQ(merge().status, 0);
  std::istringstream lines(content_of(folder / "whole/deviation.jsonl"));
  int index = 0;
  for (std::string line; std::getline(lines, line); ++index) EXPECT_EQ(json::parse(line)["index"], index);
  EXPECT_EQ(index, 3);
}

TEST_F(Merge, TheWholeTakesTheEmptyPlaceOrNone) {
  run();
  fs::create_directory(folder / "whole");
  const std::string info = content_of(shard(1) / "run.json");
  change(shard(1) / "run.json", [](json& run) { run["options"]["shard"] = "5/2"; });
  const auto wrong = merge();
  EXPECT_EQ(wrong.status, 1);
  EXPECT_THAT(wrong.error, HasSubstr("part.shard-1-of-2 holds options that cannot be: --shard \"5/2\""));
  EXPECT_TRUE(fs::is_empty(folder / "whole"));  // still there
  write_file(shard(1) / "run.json", info);
  EXPECT_EQ(merge().status, 0);
  EXPECT_THAT(merge().error,
              HasSubstr("is there already; --run-dir must name a folder that is not, or is empty"));
  EXPECT_EQ(merge("part.shard-0-of-2/inside/it").status, 2);
  EXPECT_FALSE(fs::exists(shard(0) / "inside"));
  fs::create_symlink("nowhere", folder / "link");
  EXPECT_EQ(merge("link").status, 2);
  EXPECT_TRUE(fs::is_symlink(folder / "link"));
}

TEST_F(Merge, ACellThatAShardLacksIsMissed) {
  eval();
  const fs::path results = shard(0) / "last-1/results.json";
  const std::string content = content_of(results);
  fs::remove(results);
  EXPECT_THAT(refusal(), HasSubstr("part.shard-0-of-2/last-1 has no results.json"));
  write_file(results, content);
  const fs::path lines = shard(1) / "plain/sums/samples.jsonl";
  const std::string whole = content_of(lines);
  write_file(lines, whole.substr(0, whole.size() - 20));
  EXPECT_THAT(refusal(), HasSubstr("plain/sums/samples.jsonl: the last line is torn"));
  write_file(lines, whole);
  EXPECT_EQ(merge().status, 0);
}

TEST_F(Merge, WhatAnEvaluationSaysIsChecked) {
  eval();
  const auto refused = [&](const std::string& file, const std::function<void(json&)>& action) {
    std::string before[2];
    for (int i = 0; i < 2; ++i) {
      before[i] = content_of(shard(i) / file);
      change(shard(i) / file, action);
    }
    const std::string error = refusal();
    for (int i = 0; i < 2; ++i) write_file(shard(i) / file, before[i]);
    return error;
  };
  const auto evaluation = [&](const std::function<void(json&)>& action) {
    return refused("eval.json", action);
  };
  EXPECT_THAT(evaluation([](json& e) { e.erase("model"); }), HasSubstr("eval.json has no object model"));
  EXPECT_THAT(evaluation([](json& e) { e["tasks"] = 5; }), HasSubstr("eval.json has no list tasks"));
  for (const json& problems : {json(-1), json(4.7), json("4")})
    EXPECT_THAT(evaluation([&](json& e) { e["tasks"][0]["problems"] = problems; }),
                HasSubstr("tasks must hold objects with a name and a number of problems"));
  for (const json& resamples : {json(-1), json("x"), json(), json(1e9)})
    EXPECT_THAT(evaluation([&](json& e) { e["options"]["resamples"] = resamples; }),
                HasSubstr("options.resamples is "));
  EXPECT_THAT(evaluation([](json& e) { e["cells"][0]["name"] = std::string("a\0b", 3); }),
              HasSubstr("is no name of a folder"));
  const auto header = [&](const std::function<void(json&)>& action) {
    return refused("plain/results.json", action);
  };
  EXPECT_THAT(header([](json& r) { r["config"] = json::array(); }),
              HasSubstr("results.json has no object config"));
  EXPECT_THAT(header([](json& r) { r["n-samples"]["sums"] = 5; }), HasSubstr("has no object n-samples.sums"));
  EXPECT_THAT(header([](json& r) { r["results"] = json::object(); }),
              HasSubstr("results.json has no results"));
}

}  // namespace
}  // namespace sinkscope
