#include <gmock/gmock.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/npz.h>

#include <algorithm>
#include <cmath>

#include "support/program.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;

TEST(MakeCheckpoint, MakesAModelThatRuns) {
  const TemporaryFolder folder;
  const std::string made = folder / "made";
  const auto result = run_program(
      {"make-checkpoint", "--like", "llada-tiny", "--layers", "3", "--dtype", "f32", "--out", made});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.error, HasSubstr("30 tensors"));
  const std::string out = folder / "f.npz";
  ASSERT_EQ(run_program({"forward", made, "--ids", "1,2,511", "--out", out}).status, 0);
  const NpzFile arrays(out);
  EXPECT_EQ(arrays.array("column_sum").shape, (std::vector<std::int64_t>{1, 3, 4, 3}));
  // Norm, then 64 products of deviation 0.02: logits of deviation 0.16, of 1536 none beyond 5 deviations.
  for (const float logit : arrays.floats("logits")) EXPECT_LT(std::abs(logit), 0.8F);
}

TEST(MakeCheckpoint, OptionsChangeWhatTheySay) {
  const TemporaryFolder folder;
  const auto make = [&](const std::string& name, std::vector<std::string> options) {
    options.insert(options.begin(),
                   {"make-checkpoint", "--like", "llada-tiny", "--quiet", "--out", folder / name});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(result.error, "");
    return Checkpoint::open(folder / name);
  };
  const auto bytes = [](const Checkpoint& checkpoint) {
    const TensorView& view = checkpoint.tensor("model.transformer.wte.weight");
    return std::string(reinterpret_cast<const char*>(view.bytes.data()), view.bytes.size());
  };
  const Checkpoint plain = make("plain", {});
  EXPECT_EQ(plain.config().layers, 2);
  EXPECT_EQ(plain.config().weights_dtype, DType::bf16);
  EXPECT_EQ(plain.weight_files().size(), 1U);
  const Checkpoint again = make("again", {"--threads", "1", "--shard_size", "100KB", "--seed", "0"});
  EXPECT_GT(again.weight_files().size(), 1U);
  EXPECT_EQ(bytes(again), bytes(plain));
  EXPECT_NE(bytes(make("seeded", {"--seed", "1"})), bytes(plain));
  EXPECT_EQ(make("half", {"--dtype", "f16"}).config().weights_dtype, DType::f16);
}

TEST(MakeCheckpoint, MemoryDoesNotGrowWithTheCheckpoint) {
  const TemporaryFolder folder;
  const auto peak = [&](const std::string& layers) {
    const auto result = run_program({"make-checkpoint", "--like", "llada-tiny", "--layers", layers, "--dtype",
                                     "f32", "--shard-size", "32MiB", "--out", folder / layers});
    EXPECT_EQ(result.status, 0) << result.error;
    return result.peak_kib;
  };
  std::uintmax_t bytes = 0;
  const long little = peak("1"), much = peak("600");
  for (const auto& entry : std::filesystem::directory_iterator(folder / "600")) bytes += entry.file_size();
  ASSERT_GT(bytes, 120'000'000U);
  // Names and shapes of 5400 tensors, the header's text and the index.
  EXPECT_LT(much - little, 24 * 1024);
}

TEST(MakeCheckpoint, WrongUseIsNamed) {
  const TemporaryFolder folder;
  const std::string out = folder / "made";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"--out", out}, "--like"},
      {{"--like", "llada-8b"}, "--out"},
      {{"--like", "llada-tiny", "--out", ""}, "--out is empty"},
      {{"--like", "gpt-2", "--out", out},
       "llada-8b, mmada-8b, dream-7b, llama-3.1-8b, qwen2.5-7b, llada-moe-7b, llada-small"},
      {{"--like", "llada-tiny", "--layers", "0", "--out", out}, "--layers is 0"},
      {{"--like", "llada-tiny", "--layers", "5000", "--out", out}, "--layers is 5000"},
      {{"--like", "llada-tiny", "--layers", "two", "--out", out}, "'two'"},
      {{"--like", "llada-tiny", "--seed", "-1", "--out", out}, "--seed"},
      {{"--like", "llada-tiny", "--dtype", "f64", "--out", out}, "f64"},
      {{"--like", "llada-tiny", "--shard-size", "5", "--out", out}, "500MB"},
      {{"--like", "llada-tiny", "--shard-size", "0GB", "--out", out}, "--shard-size 0GB"},
      {{"--like", "llada-tiny", "--shard-size", "99999999999GB", "--out", out}, "--shard-size"},
      {{"--like", "llada-tiny", "--threads", "0", "--out", out}, "--threads"}};
  for (auto [arguments, named] : table) {
    arguments.insert(arguments.begin(), "make-checkpoint");
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << named << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(MakeCheckpoint, WhatIsThereStaysAndTooLittleRoomIsSaid) {
  const TemporaryFolder folder;
  testing::write_file(folder / "taken", "mine");
  const auto taken = run_program({"make-checkpoint", "--like", "llada-tiny", "--out", folder / "taken"});
  EXPECT_EQ(taken.status, 1);
  EXPECT_THAT(taken.error, HasSubstr("taken exists already"));
  EXPECT_EQ(testing::content_of(folder / "taken"), "mine");

  // 4096 layers in float32
  if (std::filesystem::space(folder.path()).available > 3'500'000'000'000U)
    GTEST_SKIP() << "this disk has room for anything";
  const auto large = run_program({"make-checkpoint", "--like", "llada-8b", "--layers", "4096", "--dtype",
                                  "f32", "--out", folder / "large"});
  EXPECT_EQ(large.status, 1);
  EXPECT_THAT(large.error, HasSubstr("needs 3577."));
  EXPECT_FALSE(std::filesystem::exists(folder / "large"));
}

}  // namespace
}  // namespace sinkscope
