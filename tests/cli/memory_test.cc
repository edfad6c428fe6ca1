// What inspect predicts and what run then takes.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;

json predicted(const std::string& model, std::int64_t positions) {
  const auto result =
      run_program({"inspect", model, "--json", "--positions", std::to_string(positions), "--threads", "2"});
  EXPECT_EQ(result.status, 0) << result.error;
  return json::parse(result.out)["memory"];
}

void expect_within_a_tenth(const std::string& model, const std::string& dtype, const std::string& weights,
                           const json& memory) {
  const TemporaryFolder folder;
  std::string ids = "3";
  for (int i = 4; i < 67; ++i) ids += "," + std::to_string(i);
  const auto run = run_program({"run", model, "--raw", "--prompt-ids", ids, "--gen-len", "64", "--block-len",
                                "64", "--steps", "2", "--threads", "2", "--dtype", dtype, "--weights",
                                weights, "--run-dir", folder / "run"});
  ASSERT_EQ(run.status, 0) << run.error;
  const double peak = 1024.0 * static_cast<double>(run.peak_kib);
  const double expected = memory[weights == "int8" ? "int8" : dtype]["peak"];
  EXPECT_NEAR(expected / peak, 1, 0.1) << dtype << " " << weights << ": " << peak * 1e-6 << " MB";
}

#if !defined(__SANITIZE_ADDRESS__)
TEST(Memory, ThePredictedPeakIsWithinATenthOfTheRunsPeak) {
  const TemporaryFolder folder;
  const std::string large = folder / "large";  // 154 M parameters
  ASSERT_EQ(
      run_program({"make-checkpoint", "--like", "llada-small", "--layers", "40", "--out", large}).status, 0);
  for (const std::string& model : {std::string("tiny-llada"), large}) {
    const json memory = predicted(model, 128);
    expect_within_a_tenth(model, "f32", "native", memory);
    expect_within_a_tenth(model, "bf16", "native", memory);
    expect_within_a_tenth(model, "bf16", "int8", memory);
  }
}
#endif

TEST(Memory, WhatCannotFitIsRefusedWithTheNumbersAndWhatWouldHelp) {
  const TemporaryFolder folder;
  const auto result = run_program({"run", "tiny-llada", "--prompt-ids", "1,2,3", "--gen-len", "8192",
                                   "--steps", "1", "--block-len", "8192", "--maps",
                                   "0:0,0:1,0:2,0:3,1:0,1:1,1:2,1:3,2:0,2:1,2:2,2:3,3:0,3:1,3:2,3:3",
                                   "--batch", "60000", "--prompts",
                                   [&] {
                                     std::string prompts;
                                     for (int i = 0; i < 400; ++i) prompts += "one more\n";
                                     testing::write_file(folder / "prompts.txt", prompts);
                                     return (folder / "prompts.txt").string();
                                   }(),
                                   "--run-dir", folder / "run"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("GiB are free"));
  EXPECT_THAT(result.error, HasSubstr("--batch 1 would need"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(Memory, TheAddressSpacesLimitCounts) {
  const TemporaryFolder folder;
  std::string maps = "0:0";
  for (int layer = 0; layer < 6; ++layer)
    for (int head = 0; head < 4; ++head) maps += "," + std::to_string(layer) + ":" + std::to_string(head);
  const std::vector<std::string> arguments{
      "run",     "tiny-llada", "--prompt-ids", "1,2,3", "--gen-len", "8192",        "--block-len", "8192",
      "--steps", "1",          "--maps",       maps,    "--run-dir", folder / "run"};
  const auto result = run_program(arguments, {.in_child = [] {
                                    const struct rlimit limit { 3UL << 30, 3UL << 30 };
                                    ::setrlimit(RLIMIT_AS, &limit);
                                  }});  // the maps alone take 6 GiB
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("GiB are free"));
  EXPECT_THAT(result.error, HasSubstr("fewer --maps would need"));
  EXPECT_FALSE(std::filesystem::exists(folder / "run"));
}

TEST(Memory, InspectRefusesSizesThatAreNone) {
  for (const char* option : {"--positions", "--batch", "--threads"}) {
    const auto result = run_program({"inspect", "tiny-llada", option, "0"});
    EXPECT_EQ(result.status, 2);
    EXPECT_THAT(result.error, HasSubstr(option));
  }
}

}  // namespace
}  // namespace sinkscope
