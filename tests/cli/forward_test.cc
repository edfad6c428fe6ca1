#include <gmock/gmock.h>
#include <sinkscope/npz.h>

#include "support/program.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;

const std::string model = std::string(SINKSCOPE_TEST_DATA) + "/golden/llada-random";

TEST(Forward, RaggedRowsEqualTheirRunsAloneAndArePaddedVisibly) {
  const TemporaryFolder folder;
  ASSERT_EQ(run_program({"forward", model, "--ids", "5,6,7;8,9", "--out", folder / "both.npz"}).status, 0);
  ASSERT_EQ(run_program({"forward", model, "--ids", "8,9", "--out", folder / "alone.npz"}).status, 0);
  const NpzFile both(folder / "both.npz"), alone(folder / "alone.npz");
  EXPECT_EQ(both.int32s("input_ids"), (std::vector<std::int32_t>{5, 6, 7, 8, 9, -1}));
  const std::vector<float> logits = both.floats("logits"), expected = alone.floats("logits");
  const auto vocabulary = static_cast<std::size_t>(both.array("logits").shape[2]);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                         logits.begin() + static_cast<std::ptrdiff_t>(3 * vocabulary)));
  // [B, L, H, S]: the place past the second row's end receives no attention
  const std::vector<float> columns = both.floats("column_sum");
  EXPECT_EQ(columns.back(), 0);
}

TEST(Forward, WrongUseIsNamed) {
  const TemporaryFolder folder;
  const std::string out = folder / "f.npz";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"forward", model, "--out", out}, "--ids"},
      {{"forward", model, "--ids", "1,2"}, "--out"},
      {{"forward", model, "--ids", "1,x", "--out", out}, "'x'"},
      {{"forward", model, "--ids", "1,,2", "--out", out}, "--ids"},
      {{"forward", model, "--ids", "1;;2", "--out", out}, "--ids"},
      {{"forward", model, "--ids", "1,300", "--out", out}, "300"},
      {{"forward", model, "--ids", "-1", "--out", out}, "'-1'"},
      {{"forward", model, "--ids", "99999999999", "--out", out}, "99999999999"},
      {{"forward", model, "--ids", "1", "--out", out, "--device", "cuda"}, "CUDA"},
      {{"forward", model, "--ids", "1", "--out", out, "--device", "tpu"}, "tpu"},
      {{"forward", model, "--ids", "1", "--out", out, "--device", "cuda:x"}, "cuda:x"},
      {{"forward", model, "--ids", "1", "--out", out, "--dtype", "f16"}, "bf16"},
      {{"forward", model, "--ids", "1", "--out", out, "--dtype", "f64"}, "f64"},
      {{"forward", model, "--ids", "1", "--out", out, "--threads", "0"}, "--threads"},
      {{"forward", model, "--ids", "1", "--out", out, "--threads", "many"}, "--threads"}};
  for (const auto& [arguments, named] : table) {
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << named << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(out));
  }
}

TEST(Forward, FailuresNameTheFile) {
  const TemporaryFolder folder;
  const auto missing =
      run_program({"forward", (folder / "nothing").string(), "--ids", "1", "--out", folder / "f.npz"});
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.error, HasSubstr("nothing"));
  const auto unwritable = run_program({"forward", model, "--ids", "1", "--out", folder / "no/such/f.npz"});
  EXPECT_EQ(unwritable.status, 1);
  EXPECT_THAT(unwritable.error, HasSubstr("no/such"));
}

}  // namespace
}  // namespace sinkscope
