// A variant of attention as a user trains and runs it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::ProgramResult;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

class Variant : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string lines;
    for (int i = 0; i < 20; ++i) lines += json{{"text", std::to_string(i) + " is a number"}}.dump() + "\n";
    write_file(folder / "train.jsonl", lines);
    ASSERT_EQ(run_program({"train-tokenizer", folder / "train.jsonl", "--vocab-size", "270", "--out",
                           folder / "tokenizer", "--quiet"})
                  .status,
              0);
  }
  ProgramResult train(const json& changes) {
    config.merge_patch(changes);
    write_file(folder / "config.json", config.dump());
    return run_program({"train", folder / "config.json", "--out", folder / "run", "--quiet"});
  }
  ProgramResult run(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"run", folder / "run/latest", "--run-dir", folder / "samples",
                                       "--quiet"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(arguments);
  }
  void expect_refused(const std::vector<std::string>& more, const std::string& message) const {
    const ProgramResult result = run(more);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_FALSE(std::filesystem::exists(folder / "samples"));
  }

  TemporaryFolder folder;
  json config = {{"objective", "masked-diffusion"},
                 {"model", {{"layers", 2}, {"heads", 2}, {"width", 16}, {"mlp_width", 24}}},
                 {"tokenizer", "tokenizer"},
                 {"data", {{"files", {"train.jsonl"}}}},
                 {"context", 24},
                 {"batch", 4},
                 {"steps", 4},
                 {"probe", {{"every", 2}, {"samples", 4}, {"positions", 8}}}};
};

TEST_F(Variant, OfDiffusionIsTrainedAndRunAsFarAsItsPositionsGo) {
  const ProgramResult trained =
      train({{"model", {{"attention", {{"slot", "sink-token"}, {"positions", "learned"}}}}}});
  ASSERT_EQ(trained.status, 0) << trained.error;
  EXPECT_THAT(content_of(folder / "run/metrics.jsonl"), HasSubstr("\"slot_rate\""));
  EXPECT_THAT(run_program({"inspect", folder / "run/latest"}).out,
              AllOf(HasSubstr(R"({"slot":"sink-token","positions":"learned"})"), Not(HasSubstr("RoPE"))));
  const std::vector<std::string> five{"--prompt-ids", "1,2,3,4,5", "--block-len", "4", "--steps"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), five.begin(), five.end());
    return more;
  };
  expect_refused(with({"5", "--gen-len", "20"}), "with its answer has 25 positions, the model has learnt 24");
  expect_refused(with({"4", "--gen-len", "16", "--weights", "int8"}), "this model's variant of attention");
  const ProgramResult ran = run(with({"4", "--gen-len", "16"}));
  EXPECT_EQ(ran.status, 0) << ran.error;
}

TEST_F(Variant, PrefixLmIsTrainedAndRunBehindItsPrefix) {
  const ProgramResult trained = train({{"objective", "prefix-lm"}, {"prefix", 3}});
  ASSERT_EQ(trained.status, 0) << trained.error;
  expect_refused({"--prompt-ids", "1,2", "--gen-len", "5"}, "has 2 tokens: the first 3 of this model");
  const ProgramResult ran = run({"--prompt-ids", "1,2,3", "--gen-len", "5"});
  EXPECT_EQ(ran.status, 0) << ran.error;
}

}  // namespace
}  // namespace sinkscope
