#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::run_program;
using testing::TemporaryFolder;

// A made checkpoint: 2 layers of width 64, MLP 192, vocabulary 512.
class Bench : public ::testing::Test {
 protected:
  Bench() {
    EXPECT_EQ(run_program({"make-checkpoint", "--like", "llada-tiny", "--out", model_, "--quiet"}).status, 0);
  }
  testing::ProgramResult bench(std::vector<std::string> options) const {
    options.insert(options.begin(), {"bench", model_});
    return run_program(options);
  }

  TemporaryFolder folder_;
  std::string model_ = folder_ / "model";
};

// Of the last of the two blocks only `wanted` rows leave.
double matrix_flops(double positions, double wanted) {
  const double rows_out = positions + wanted;
  return 2 * 2 * positions * 3 * 64 * 64 + rows_out * 2 * (64 * 64 + 3 * 64 * 192) + 2 * wanted * 64 * 512;
}
double attention_flops(double positions, double wanted) {
  return 2 * 2 * positions * positions * 64 + (positions + wanted) * 2 * positions * 64;
}

TEST_F(Bench, NumbersAreConsistent) {
  const auto result =
      bench({"--positions", "31", "--repeat", "3", "--dtype", "f32", "--threads", "1", "--json"});
  ASSERT_EQ(result.status, 0) << result.error;
  const json report = json::parse(result.out);
  EXPECT_EQ(report["model"], model_);
  EXPECT_EQ(report["dtype"], "f32");
  EXPECT_EQ(report["positions"], 31);
  EXPECT_EQ(report["masked_positions"], 15);
  EXPECT_EQ(report["threads"], 1);
  EXPECT_GT(report["load_seconds"], 0);
  EXPECT_GT(report["peak_resident_mb"], 10);
  EXPECT_LT(report["peak_resident_mb"], 4000);

  const double ceiling = report["ceiling_gflops"];
  EXPECT_DOUBLE_EQ(report["ceiling_seconds"].get<double>() * ceiling * 1e9, matrix_flops(31, 31));
  const std::map<std::string, double> flops{{"plain", matrix_flops(31, 31) + attention_flops(31, 31)},
                                            {"columns", matrix_flops(31, 31) + attention_flops(31, 31)},
                                            {"full", matrix_flops(31, 31) + attention_flops(31, 31)},
                                            {"step", matrix_flops(31, 15) + attention_flops(31, 15)}};
  for (const auto& [work, count] : flops) {
    const double seconds = report[work]["seconds"], gflops = report[work]["gflops"];
    EXPECT_DOUBLE_EQ(seconds * gflops * 1e9, count) << work;
    EXPECT_DOUBLE_EQ(report[work]["share_of_ceiling"], gflops / ceiling);
    EXPECT_DOUBLE_EQ(report[work]["tokens_per_second"], 31 / seconds);
    std::vector<double> rounds = report[work]["rounds"];
    ASSERT_EQ(rounds.size(), 3U);
    std::sort(rounds.begin(), rounds.end());
    EXPECT_EQ(seconds, rounds[1]) << work;
  }
  const double plain = report["plain"]["seconds"];
  EXPECT_DOUBLE_EQ(report["columns_overhead"], report["columns"]["seconds"].get<double>() / plain - 1);
  EXPECT_DOUBLE_EQ(report["full_overhead"], report["full"]["seconds"].get<double>() / plain - 1);
  EXPECT_EQ(report["step_seconds"], report["step"]["seconds"]);
}

TEST_F(Bench, EveryLengthHasItsLine) {
  const auto result = bench({"--positions", "16,8", "--repeat", "2", "--seed", "3", "--json", "--quiet"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.error, "");
  std::istringstream lines(result.out);
  std::vector<json> reports;
  for (std::string line; std::getline(lines, line);) reports.push_back(json::parse(line));
  ASSERT_EQ(reports.size(), 2U);
  EXPECT_EQ(reports[0]["positions"], 16);
  EXPECT_EQ(reports[1]["positions"], 8);
  EXPECT_EQ(reports[1]["dtype"], "bf16");  // the checkpoint's
  EXPECT_EQ(reports[1]["seed"], 3);
  const std::vector<double> rounds = reports[1]["plain"]["rounds"];
  EXPECT_DOUBLE_EQ(reports[1]["plain"]["seconds"], (rounds[0] + rounds[1]) / 2);
}

TEST_F(Bench, TheTableHasARowForEachAndTheFormulaIsShownWhenAskedFor) {
  const auto plain = bench({"--positions", "16", "--repeat", "1"});
  ASSERT_EQ(plain.status, 0) << plain.error;
  for (const char* text :
       {"16 positions (8 masked)", "ceiling", "plain", "columns", "full", "step", "tokens/s"})
    EXPECT_THAT(plain.out, HasSubstr(text));
  EXPECT_THAT(plain.error, Not(HasSubstr("FLOPs")));
  const auto verbose = bench({"--positions", "16", "--repeat", "1", "--verbose", "--json"});
  EXPECT_THAT(verbose.error, HasSubstr("2 * 2 * 16 * 16 * 64"));
  EXPECT_THAT(verbose.error, HasSubstr("round 1 of 1: step"));
  EXPECT_TRUE(json::accept(verbose.out));
}

TEST_F(Bench, WrongUseIsNamed) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"--positions", "1"}, "--positions"},
      {{"--positions", "8,"}, "--positions"},
      {{"--positions", "8;9"}, "like 512,1024"},
      {{"--positions", ""}, "--positions"},
      {{"--positions", "2000000"}, "1048576"},
      {{"--repeat", "0"}, "--repeat is 0"},
      {{"--repeat", "often"}, "'often'"},
      {{"--seed", "-1"}, "--seed"},
      {{"--dtype", "f16"}, "bf16"},
      {{"--device", "cuda"}, "--device"}};
  for (const auto& [options, named] : table) {
    const auto result = bench(options);
    EXPECT_EQ(result.status, 2) << named << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
  const auto missing = run_program({"bench", folder_ / "nothing"});
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.error, HasSubstr("nothing"));
}

}  // namespace
}  // namespace sinkscope
