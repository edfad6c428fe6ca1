// Last rows of autoregressive samples as steps.
#include "measure/row_steps.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

constexpr RunShape shape{1, 2, std::nullopt, false};

// Prompt of 3, two tokens; positions of states, and what the second row is.
struct Sample {
  std::int64_t positions = 6;
  std::int32_t prompt = 3;
  std::vector<std::int32_t> second{1, 2, 3, 4, -1, -1};
  std::vector<std::int64_t> row_shape{1, 2, 4};
  float value = 0.25F;
  ArrayType type = ArrayType::float32;
};

std::filesystem::path write(const TemporaryFolder& folder, const Sample& sample) {
  NpzWriter writer(folder / "s.npz");
  std::vector<std::int32_t> states{1, 2, 3, -1, -1, -1};
  states.insert(states.end(), sample.second.begin(), sample.second.end());
  for (const std::int32_t id : {1, 2, 3, 4, 5, -1}) states.push_back(id);
  states.resize(static_cast<std::size_t>(3 * sample.positions), 1);
  writer.add("states", {3, sample.positions}, states);
  writer.add("prompt_length", {}, std::span(&sample.prompt, 1));
  writer.add("last_row_0", ArrayType::float32, {1, 2, 3}, std::vector<float>{0.5, 0.25, 0.25, 0, 0, 1});
  if (sample.type == ArrayType::uint8) {
    writer.add("last_row_1", {1, 2, 4}, std::vector<std::uint8_t>(8));
  } else {
    std::size_t count = 1;
    for (const std::int64_t extent : sample.row_shape) count *= static_cast<std::size_t>(extent);
    writer.add("last_row_1", sample.type, sample.row_shape, std::vector<float>(count, sample.value));
  }
  writer.finish();
  return folder / "s.npz";
}

TEST(RowSteps, ScoresAreAttentionTimesKeys) {
  const TemporaryFolder folder;
  const auto file = write(folder, {});
  EXPECT_TRUE(holds_rows(file));
  const RowSteps rows(file, shape);
  EXPECT_EQ(rows.shape().steps, 2U);
  EXPECT_EQ(rows.shape().positions, 4U);
  Step step;
  rows.read(0, step);
  find_sinks(step, default_detection(SinkRule::topk));
  EXPECT_EQ(step.shape.positions, 3U);
  EXPECT_THAT(step.ids, ElementsAre(1, 2, 3));
  EXPECT_THAT(step.columns, ElementsAre(1.5, 0.75, 0.75, 0, 0, 3));
  EXPECT_THAT(step.largest, ElementsAre(0, 2));
  EXPECT_THAT(step.queries, ElementsAre(3, 0, 0)) << "the prompt's last token asks";
  rows.read(1, step);
  find_sinks(step, default_detection(SinkRule::paper));
  EXPECT_THAT(step.columns, ::testing::Each(1)) << "uniform attention";
  EXPECT_THAT(step.queries, ElementsAre(0, 4, 0));
  EXPECT_THAT(step.largest, ElementsAre(-1, -1));
}

std::string error_of(const Sample& sample, const RunShape& run = shape) {
  const TemporaryFolder folder;
  const auto file = write(folder, sample);
  try {
    const RowSteps rows(file, run);
    Step step;
    for (std::size_t t = 0; t < rows.shape().steps; ++t) rows.read(t, step);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("s.npz"));
    return error.what();
  }
  return "(none)";
}

TEST(RowSteps, WhatIsWrongIsNamed) {
  EXPECT_EQ(error_of({}), "(none)");
  EXPECT_THAT(error_of({}, {2, 2, std::nullopt, false}), HasSubstr("last_row_0 has the shape [1,2,3]"));
  EXPECT_THAT(error_of({.row_shape = {1, 2, 3}}), HasSubstr("ask for [L,H,n] = [1,2,4]"));
  EXPECT_THAT(error_of({.value = 2}), HasSubstr("last_row_1 is 2 at layer 0, head 0, key 0"));
  EXPECT_THAT(error_of({.value = -1}), HasSubstr("between 0 and 1"));
  EXPECT_THAT(error_of({.type = ArrayType::uint8}), HasSubstr("holds uint8"));
  EXPECT_THAT(error_of({.second = {1, 2, 3, -1, -1, -1}}),
              HasSubstr("states holds the id -1 among the 4 keys"));
  EXPECT_THAT(error_of({.prompt = 0}), HasSubstr("prompt_length is 0"));
  EXPECT_THAT(error_of({.prompt = 6}), HasSubstr("fewer than the prompt's 6 and 2 tokens take"));
}

TEST(RowSteps, OtherSamplesHoldNone) {
  const TemporaryFolder folder;
  testing::write_file(folder / "x.npz", "text");
  EXPECT_THROW(holds_rows(folder / "x.npz"), Error);
}

}  // namespace
}  // namespace sinkscope
