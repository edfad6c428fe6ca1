#include <gmock/gmock.h>
#include <sinkscope/token_writer.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using testing::TemporaryFolder;

TEST(TokenWriter, WritesOneRowATokenAndTheGrowingSequence) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "sample_00000.npz";
  TokenLayout layout{.longest = 4, .layers = 1, .heads = 2, .vocabulary = 3, .prompt_length = 1};
  layout.logits = layout.intervention = true;
  layout.array_type = ArrayType::float32;
  TokenWriter writer(path, layout);
  const std::vector<std::int32_t> sequence{7, 8, 9};
  const std::vector<float> row{1, 1, 0.5, 0.5, 0.25, 0.75};
  const std::vector<std::uint8_t> removed{0, 1, 0, 0};
  const std::vector<float> logits{3, 2, 1};
  writer.append_token({std::span(sequence).first(1), std::span(row).first(2), {}, logits});
  writer.append_token({std::span(sequence).first(2), std::span(row).last(4), removed, logits});
  EXPECT_FALSE(std::filesystem::exists(path));
  writer.finish(sequence);

  const NpzFile file(path);
  EXPECT_THAT(file.array("states").shape, ElementsAre(3, 4));
  EXPECT_THAT(file.int32s("states"), ElementsAre(7, -1, -1, -1, 7, 8, -1, -1, 7, 8, 9, -1));
  EXPECT_THAT(file.array("last_row_0").shape, ElementsAre(1, 2, 1));
  EXPECT_THAT(file.floats("last_row_1"), ElementsAre(0.5, 0.5, 0.25, 0.75));
  EXPECT_FALSE(file.contains("masked_keys_0"));
  EXPECT_THAT(file.array("masked_keys_1").shape, ElementsAre(1, 2, 2));
  EXPECT_THAT(file.array("logits").shape, ElementsAre(2, 3));
  EXPECT_EQ(file.int32_scalar("mask_id"), -1);
  EXPECT_EQ(file.int32_scalar("prompt_length"), 1);
}

TEST(TokenWriter, LeavesNothingBehindUnfinished) {
  const TemporaryFolder folder;
  {
    TokenWriter writer(folder.path() / "sample_00000.npz", {.longest = 4, .layers = 1, .heads = 1});
    const std::vector<std::int32_t> sequence{7};
    writer.append_token({sequence, std::vector<float>{1}, {}, {}});
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace sinkscope
