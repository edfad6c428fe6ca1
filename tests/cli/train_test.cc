// Training as a user starts, kills and goes on with it.
#include <gmock/gmock.h>
#include <stdlib.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

class Train : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 60; ++i)
      lines +=
          json{{"prompt", std::to_string(i) + " + 1 ="}, {"answer", std::to_string(i + 1)}}.dump() + "\n";
    write_file(folder / "train.jsonl", lines);
    ASSERT_EQ(run_program({"train-tokenizer", folder / "train.jsonl", "--vocab-size", "270", "--out",
                           folder / "tokenizer", "--quiet"})
                  .status,
              0);
    write_config();
  }
  void write_config() const { write_file(folder / "config.json", config.dump()); }
  testing::ProgramResult train(const std::string& run, std::vector<std::string> more = {},
                               const testing::ProgramOptions& options = {}) const {
    std::vector<std::string> arguments{"train", folder / "config.json", "--out", folder / run};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments, options);
  }
  std::string model_of(const std::string& run) const {
    return content_of(folder / (run + "/latest/model.safetensors"));
  }

  TemporaryFolder folder;
  json config = {{"objective", "masked-diffusion"},
                 {"model", {{"layers", 1}, {"heads", 2}, {"width", 16}, {"mlp_width", 24}}},
                 {"tokenizer", "tokenizer"},
                 {"chat_template", "{{ bos_token }}{{ messages[0]['content'] }}\n"},
                 {"data", {{"files", {"train.jsonl"}}, {"answer_only", true}, {"fill", 4}}},
                 {"context", 24},
                 {"batch", 8},
                 {"steps", 300},
                 {"optimizer", {{"learning_rate", 0.01}}},
                 {"log_every", 10},
                 {"checkpoint_every", 20},
                 {"probe", {{"every", 100}, {"samples", 4}, {"positions", 8}}}};
};

TEST_F(Train, KilledAtAnyMomentItEndsWithTheSameBytes) {
  const auto whole = train("whole");
  ASSERT_EQ(whole.status, 0) << whole.error;
  EXPECT_THAT(whole.error, HasSubstr("300 steps"));
  EXPECT_THAT(whole.error, HasSubstr("/latest"));
  int kills = 0;
  for (int milliseconds = 150; milliseconds < 3000; milliseconds += milliseconds / 3) {
    const auto killed = train("killed", {"--resume", "--quiet"},
                              {.in_child = {}, .meanwhile = [&](pid_t child) {
                                 std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
                                 ::kill(child, SIGKILL);
                               }});
    kills += killed.status == 128 + SIGKILL ? 1 : 0;
  }
  EXPECT_GT(kills, 0);
  const auto last = train("killed", {"--resume"});
  ASSERT_EQ(last.status, 0) << last.error;
  EXPECT_EQ(model_of("killed"), model_of("whole"));
  std::vector<int> steps;
  std::istringstream lines(content_of(folder / "killed/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);)
    if (const json parsed = json::parse(line); parsed.contains("loss")) steps.push_back(parsed["step"]);
  EXPECT_EQ(steps.size(), 30U);  // every tenth step once, whatever was made twice
}

TEST_F(Train, AnInterruptLeavesACheckpointAndSaysHowToGoOn) {
  config["steps"] = 1000000;
  write_config();
  const auto stopped =
      train("run", {}, {.in_child = {}, .meanwhile = [&](pid_t child) {
                          while (content_of(folder / "run/metrics.jsonl").find("loss") == std::string::npos)
                            std::this_thread::sleep_for(std::chrono::milliseconds(20));
                          ::kill(child, SIGINT);
                        }});
  EXPECT_EQ(stopped.status, 0) << stopped.error;
  EXPECT_THAT(stopped.error, HasSubstr("--resume` goes on"));
  EXPECT_FALSE(model_of("run").empty());
}

TEST_F(Train, TheModelRunsUnderTheOtherCommands) {
  config["steps"] = 20;
  for (const char* objective : {"masked-diffusion", "autoregressive"}) {
    config["objective"] = objective;
    if (std::string(objective) == "autoregressive") config["data"].erase("fill");
    write_config();
    ASSERT_EQ(train(objective, {"--quiet"}).status, 0);
    const std::string model = folder / (std::string(objective) + "/latest");
    const auto run = run_program({"run", model, "--prompt", "3 + 1 =", "--gen-len", "32", "--quiet",
                                  "--run-dir", folder / (std::string(objective) + "-run")});
    EXPECT_EQ(run.status, 0) << run.error;
    const auto inspected = run_program({"inspect", model, "--json"});
    EXPECT_EQ(json::parse(inspected.out)["generation"],
              std::string(objective) == "autoregressive" ? "autoregressive" : "masked diffusion");
  }
}

// Whatever stops it before the first step, the same --out is free for the next try.
TEST_F(Train, ARunThatCannotBeginLeavesNothing) {
  const auto refused = [&](const json& changes, const std::string& message) {
    const json before = config;
    config.merge_patch(changes);
    write_config();
    const auto result = train("run");
    EXPECT_EQ(result.status, 1) << result.error;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder / "run")) << message;
    config = before;
  };
  refused({{"model", {{"layers", 1000}, {"width", 65536}, {"mlp_width", 1000000}}}},
          "GB are free; a smaller model");
  refused({{"batch", 61}}, "the data are 60 texts; a batch of 61 needs more");
  refused({{"probe", {{"positions", 23}}}}, "no text for the probe has 23 tokens");
  write_file(folder / "cut.jsonl", "{\"text\": \"x\"}\n{\"text\": ");
  refused({{"data", {{"files", {"cut.jsonl"}}}}}, "cut.jsonl line 2");
  std::filesystem::create_directory(folder / "broken");
  write_file(folder / "broken/tokenizer.json", "{\"model\":");
  refused({{"tokenizer", "broken"}}, "tokenizer.json is not valid JSON");
}

TEST_F(Train, WrongUseIsNamed) {
  config["optimiser"] = json::object();
  write_config();
  const auto unknown = train("run");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.error, HasSubstr("there is no key optimiser"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
  config.erase("optimiser");
  config["data"]["files"] = {"missing.jsonl"};
  write_config();
  const auto missing = train("run");
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.error, HasSubstr("missing.jsonl"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Train, WithoutGnuplotNothingIsTrainedForAPicture) {
  testing::ProgramOptions options;
  options.in_child = [] { ::setenv("PATH", "/nowhere", 1); };
  const auto result = train("run", {"--plot"}, options);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("gnuplot is not installed"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST_F(Train, DrawsItsCurvesAfterwards) {
  config["steps"] = 20;
  write_config();
  const auto result = train("run", {"--plot"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("run/training.png"));
  EXPECT_THAT(content_of(folder / "run/training.png"), ::testing::StartsWith("\x89PNG"));
  EXPECT_THAT(content_of(folder / "run/training.csv"), HasSubstr("\nsink_rate,0,"));
}

}  // namespace
}  // namespace sinkscope
