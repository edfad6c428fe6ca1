#include "measure/sample_steps.h"

#include <gmock/gmock.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using testing::TemporaryFolder;

constexpr std::int32_t mask_id = 99;

// One step of one head over 4 positions: a prompt token, a mask within the prompt, a decoded token, a mask.
// `masses`: what the queries of each class give in all, evenly to the keys.
Step first_step(const std::vector<float>& masses, const RunShape& run) {
  const TemporaryFolder folder;
  std::vector<float> sums;
  for (const float mass : masses) sums.insert(sums.end(), 4, mass / 4);
  const std::int32_t prompt_length = 2;
  NpzWriter writer(folder / "sample.npz");
  writer.add("states", {2, 4}, std::vector<std::int32_t>{5, mask_id, 6, mask_id, 5, 6, 6, 6});
  writer.add("column_sum", ArrayType::float32, {1, 3, 1, 1, 4}, sums);
  writer.add("prompt_length", {}, std::span(&prompt_length, 1));
  writer.finish();
  Step step;
  SampleSteps(folder / "sample.npz", run).read(0, step);
  return step;
}

TEST(SampleSteps, AMaskIsMaskedWhereverItStands) {
  const Step step = first_step({1, 1, 2}, {1, 1, mask_id, false});
  EXPECT_THAT(step.status, ElementsAre(TokenStatus::prompt, TokenStatus::masked, TokenStatus::decoded,
                                       TokenStatus::masked));
  EXPECT_THAT(step.queries, ElementsAre(1, 1, 2));
  EXPECT_THAT(step.ids, ElementsAre(5, mask_id, 6, mask_id));
}

TEST(SampleSteps, AModelWithoutMasksHasNone) {
  const Step step = first_step({2, 2, 0}, {1, 1, std::nullopt, false});
  EXPECT_THAT(step.queries, ElementsAre(2, 2, 0));
}

TEST(SampleSteps, WithACacheTheSumsTellWhichQueriesWereComputed) {
  // The masks alone, as --cache dual does; a little off, as in half precision.
  EXPECT_THAT(first_step({0, 0, 1.9993F}, {1, 1, mask_id, true}).queries, ElementsAre(0, 0, 2));
  EXPECT_THAT(first_step({0, 0, 1.9993F}, {1, 1, mask_id, false}).queries, ElementsAre(1, 1, 2));
}

TEST(SampleSteps, TheRunSaysWhetherItHadACache) {
  RunInfo info;
  EXPECT_FALSE(shape_of(info).cached);
  for (const auto& [cache, cached] : {std::pair("none", false), {"prefix", true}, {"dual", true}}) {
    info.options = {{"cache", cache}};
    EXPECT_EQ(shape_of(info).cached, cached) << cache;
  }
  info.options = {{"cache", nullptr}};
  EXPECT_FALSE(shape_of(info).cached);
}

}  // namespace
}  // namespace sinkscope
