#include "measure/sample_pair.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/planted_trajectory.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using testing::growing;
using ::testing::HasSubstr;
using testing::opening;
using testing::planted_mask;
using testing::PlantedTrajectory;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

SamplePair compare(const PlantedTrajectory& a, const PlantedTrajectory& b,
                   std::optional<std::int32_t> mask_id = planted_mask) {
  const TemporaryFolder folder;
  a.write(folder / "a.npz");
  b.write(folder / "b.npz");
  const RunShape run{1, 1, mask_id, false};
  return compare_samples(Trajectory(folder / "a.npz", run), Trajectory(folder / "b.npz", run), mask_id);
}

const PlantedTrajectory forwards = opening({11, 12, 13, 14}, {{0}, {1}, {2}, {3}});

TEST(SamplePair, OfEqualSamplesNeverParts) {
  const SamplePair pair = compare(forwards, forwards);
  EXPECT_TRUE(pair.outputs_equal());
  EXPECT_EQ(pair.equal, 4U);
  EXPECT_EQ(pair.tokens(), 4U);
  EXPECT_EQ(pair.parts_at, std::nullopt);
  EXPECT_EQ(pair.kendall_tau, 1);
  EXPECT_EQ(pair.before_parting->candidates, 4U + 3 + 2 + 1);
  EXPECT_EQ(pair.before_parting->largest, 0);
  EXPECT_EQ(pair.keys_masked, std::nullopt) << "b masked no keys";
}

TEST(SamplePair, PartsAtTheFirstStateThatDiffers) {
  const SamplePair pair = compare(forwards, opening({11, 12, 77, 14}, {{0}, {1}, {2}, {3}}));
  EXPECT_EQ(pair.parts_at, 3U) << "the token of forward 2 is in the state of forward 3";
  EXPECT_EQ(pair.first_difference, 2U);
  EXPECT_EQ(pair.equal, 3U);
  EXPECT_EQ(pair.kendall_tau, 1) << "the order is the same";
  EXPECT_EQ(pair.before_parting->candidates, 4U + 3 + 2);
  EXPECT_EQ(pair.all_steps->candidates, 4U + 3 + 2 + 1);
}

TEST(SamplePair, OfTheLastTokenPartsAtTheFinalState) {
  const SamplePair pair = compare(forwards, opening({11, 12, 13, 77}, {{0}, {1}, {2}, {3}}));
  EXPECT_EQ(pair.parts_at, 4U);
  EXPECT_EQ(pair.before_parting->candidates, pair.all_steps->candidates);
}

TEST(SamplePair, AnotherOrderMayEndInTheSameOutput) {
  const SamplePair pair = compare(forwards, opening({11, 12, 13, 14}, {{3}, {2}, {1}, {0}}));
  EXPECT_TRUE(pair.outputs_equal());
  EXPECT_EQ(pair.parts_at, 1U);
  EXPECT_EQ(pair.kendall_tau, -1);
  EXPECT_EQ(pair.before_parting->candidates, 4U);
  // Masked in both at step 1: places 1 and 2; later none.
  EXPECT_EQ(pair.all_steps->candidates, 4U + 2);
}

TEST(SamplePair, PositionsOfOneStepAreTied) {
  const SamplePair pair = compare(forwards, opening({11, 12, 13, 14}, {{0, 1}, {2, 3}}));
  EXPECT_DOUBLE_EQ(*pair.kendall_tau, 4 / std::sqrt(6.0 * 4));
  EXPECT_EQ(compare(forwards, opening({11, 12, 13, 14}, {{0, 1, 2, 3}})).kendall_tau, std::nullopt);
}

TEST(SamplePair, WhatStaysMaskedComesAfterAllOthers) {
  // Places 0 and 1 are never opened.
  const SamplePair pair = compare(forwards, opening({11, 12, 13, 14}, {{}, {}, {2}, {3}}));
  EXPECT_EQ(pair.first_difference, 0U);
  // Of six pairs (0,1) is tied; (2,3) agrees; the four others are turned round.
  EXPECT_DOUBLE_EQ(*pair.kendall_tau, (1 - 4) / std::sqrt(6.0 * 5));
}

TEST(SamplePair, WhatWasNoMaskHasNoPlaceInTheOrder) {
  PlantedTrajectory given = forwards, given_reversed = opening({11, 12, 13, 14}, {{}, {3}, {2}, {1}});
  for (PlantedTrajectory* sample : {&given, &given_reversed})
    for (auto& state : sample->states) state[2] = 11;
  EXPECT_EQ(compare(given, given_reversed).kendall_tau, -1);
}

TEST(SamplePair, ASampleThatEndsEarlyStaysInItsFinalState) {
  const PlantedTrajectory idle = opening({11, 12, 13, 14}, {{0}, {1}, {2}, {3}, {}, {}});
  EXPECT_EQ(compare(forwards, idle).parts_at, std::nullopt);
  EXPECT_EQ(compare(idle, forwards).parts_at, std::nullopt);
  const PlantedTrajectory cut = opening({11, 12, 13, 14}, {{0}, {1}});
  const SamplePair pair = compare(cut, forwards);
  EXPECT_EQ(pair.parts_at, 3U);
  EXPECT_EQ(pair.all_steps->candidates, 4U + 3) << "forwards that both have";
}

TEST(SamplePair, ChangesOfConfidence) {
  PlantedTrajectory b = opening({11, 12, 77, 14}, {{0}, {1}, {2}, {3}});
  b.confidence[0] = {NAN, NAN, 0.75F, 0.25F, 0.5F, NAN};          // the last one is no candidate in b
  b.confidence[3] = {0.125F, NAN, NAN, NAN, NAN, 0.5F - 0.375F};  // the first one is none in a
  const SamplePair pair = compare(forwards, b);
  EXPECT_EQ(pair.before_parting->candidates, 3U + 3 + 2);
  EXPECT_EQ(pair.before_parting->sum_a, 4);
  EXPECT_EQ(pair.before_parting->sum_b, 4);
  EXPECT_EQ(pair.before_parting->absolute, 0.5);
  EXPECT_EQ(pair.before_parting->largest, 0.25);
  EXPECT_EQ(pair.all_steps->candidates, 3U + 3 + 2 + 1);
  EXPECT_EQ(pair.all_steps->sum_b - pair.all_steps->sum_a, -0.375);
  EXPECT_EQ(pair.all_steps->largest, 0.375);
}

TEST(SamplePair, ChangesWhereKeysWereMasked) {
  PlantedTrajectory b = opening({11, 12, 77, 14}, {{0}, {1}, {2}, {3}});
  b.confidence[0][2] = 0.25F;  // before anything was masked
  b.confidence[1][3] = 0.625F;
  b.confidence[3][5] = 1;  // behind the parting
  b.masked_keys = {{0, 0, 0, 0, 0, 0}, {1, 0, 0, 0, 1, 0}, {0, 0, 0, 0, 0, 0}, {1, 1, 1, 1, 1, 1}};
  const SamplePair pair = compare(forwards, b);
  EXPECT_EQ(pair.steps_masked, 1U);
  EXPECT_EQ(pair.masked_keys, 2U);
  EXPECT_EQ(pair.keys_masked->candidates, 3U);
  EXPECT_EQ(pair.keys_masked->sum_b - pair.keys_masked->sum_a, 0.125);
  EXPECT_EQ(pair.keys_masked->largest, 0.125);
  EXPECT_EQ(compare(b, forwards).keys_masked, std::nullopt) << "it is b that masks";
}

TEST(SamplePair, WithoutRecordedConfidences) {
  PlantedTrajectory bare = forwards;
  bare.confidence = {};
  const SamplePair pair = compare(forwards, bare);
  EXPECT_EQ(pair.before_parting, std::nullopt);
  EXPECT_EQ(pair.all_steps, std::nullopt);
  EXPECT_EQ(pair.kendall_tau, 1);
}

TEST(SamplePair, OfAutoregressiveSamples) {
  const PlantedTrajectory a = growing({5, 6, 7, 8}, 6);
  const SamplePair other = compare(a, growing({5, 9, 7}, 6), std::nullopt);
  EXPECT_EQ(other.first_difference, 1U);
  EXPECT_EQ(other.equal, 2U);
  EXPECT_EQ(other.tokens_a, 4U);
  EXPECT_EQ(other.tokens_b, 3U);
  EXPECT_EQ(other.parts_at, std::nullopt);
  EXPECT_EQ(other.kendall_tau, std::nullopt);
  EXPECT_EQ(other.all_steps, std::nullopt);
  EXPECT_TRUE(compare(a, a, std::nullopt).outputs_equal());
  const SamplePair shorter = compare(a, growing({5, 6}, 6), std::nullopt);
  EXPECT_EQ(shorter.first_difference, 2U) << "a token that is missing differs";
  EXPECT_EQ(shorter.equal, 2U);
}

TEST(SamplePair, OfOtherLengthsIsRefused) {
  EXPECT_THAT(
      [] {
        compare(forwards, opening({11, 12}, {{0}, {1}}));
      },
      ThrowsMessage<Error>(
          AllOf(HasSubstr("a.npz has 6 positions"), HasSubstr("b.npz has 4"), HasSubstr("--gen-len"))));
}

}  // namespace
}  // namespace sinkscope
