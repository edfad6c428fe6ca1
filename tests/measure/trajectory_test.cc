#include "measure/trajectory.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "support/planted_trajectory.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::growing;
using ::testing::HasSubstr;
using testing::opening;
using testing::planted_mask;
using testing::PlantedTrajectory;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;

constexpr RunShape diffusion{1, 1, planted_mask, false}, autoregressive{1, 1, std::nullopt, false};

class Trajectories : public ::testing::Test {
 protected:
  Trajectory open(const PlantedTrajectory& planted, const RunShape& run = diffusion) const {
    planted.write(folder / "sample.npz");
    return {folder / "sample.npz", run};
  }
  void expect_refused(const PlantedTrajectory& planted, const std::string& message,
                      const RunShape& run = diffusion) const {
    EXPECT_THAT([&] { open(planted, run); },
                ThrowsMessage<Error>(AllOf(HasSubstr("sample.npz"), HasSubstr(message))));
  }
  TemporaryFolder folder;
  PlantedTrajectory sample = opening({11, 12}, {{1}, {0}});
};

TEST_F(Trajectories, AreReadStepByStep) {
  sample.masked_keys = {{0, 0, 0, 0}, {1, 0, 0, 1}};
  const Trajectory trajectory = open(sample);
  EXPECT_EQ(trajectory.steps(), 2U);
  EXPECT_THAT(trajectory.prompt(), ElementsAre(1, 2));
  EXPECT_THAT(trajectory.state(0), ElementsAre(1, 2, planted_mask, planted_mask));
  EXPECT_THAT(trajectory.state(1), ElementsAre(1, 2, planted_mask, 12));
  EXPECT_THAT(trajectory.generated(), ElementsAre(11, 12));
  EXPECT_THAT(trajectory.state(7), ElementsAre(1, 2, 11, 12)) << "the final one stays";
  EXPECT_EQ(trajectory.confidence(1)[2], 0.5F);
  EXPECT_TRUE(std::isnan(trajectory.confidence(1)[3]));
  EXPECT_EQ(trajectory.masked_keys(0), 0U);
  EXPECT_EQ(trajectory.masked_keys(1), 2U);
}

TEST_F(Trajectories, OfAutoregressiveModelsEndAtTheirPadding) {
  EXPECT_THAT(open(growing({5, 6, 7}, 5), autoregressive).generated(), ElementsAre(5, 6, 7));
  EXPECT_THAT(open(growing({5, 6, 7}, 3), autoregressive).generated(), ElementsAre(5, 6, 7));
}

TEST_F(Trajectories, SayWhatWasNotRecorded) {
  sample.confidence = {};
  const Trajectory trajectory = open(sample);
  EXPECT_FALSE(trajectory.has_confidence());
  EXPECT_FALSE(trajectory.has_masked_keys());
}

TEST_F(Trajectories, OfBrokenFilesAreRefused) {
  PlantedTrajectory broken = sample;
  broken.prompt_length = 5;
  expect_refused(broken, "prompt_length is 5; it must lie between 0 and the 4 positions");
  broken = sample;
  broken.states.resize(1);
  expect_refused(broken, "states has the shape [1,4]");
  broken = sample;
  broken.states[1][3] = -1;
  expect_refused(broken, "states holds the id -1");
  broken = sample;
  broken.confidence.pop_back();
  expect_refused(broken, "confidence has the shape [1,4]; states and run.json ask for [2,4]");
  broken = sample;
  broken.masked_keys = {{0, 0, 0, 0}, {0, 0, 0, 0}};
  expect_refused(broken, "masked_keys has the shape [2,1,1,4]; states and run.json ask for [2,3,2,4]",
                 {3, 2, planted_mask, false});
  broken = growing({5, 6}, 4);
  broken.states[1][5] = 9;
  expect_refused(broken, "the id 9 behind the sequence's end", autoregressive);
  broken = growing({5, 6}, 4);
  broken.states[0][1] = -1;
  expect_refused(broken, "states ends within the prompt, which has 2 tokens", autoregressive);
}

TEST_F(Trajectories, WithoutTheArraysThatReadersNeedAreRefused) {
  for (const std::string missing : {"states", "prompt_length"}) {
    NpzWriter writer(folder / "sample.npz");
    const std::int32_t length = 2;
    if (missing != "states") writer.add("states", {2, 2}, std::vector<std::int32_t>{1, 2, 1, 2});
    if (missing != "prompt_length") writer.add("prompt_length", {}, std::span(&length, 1));
    writer.finish();
    EXPECT_THAT([&] { Trajectory(folder / "sample.npz", diffusion); },
                ThrowsMessage<Error>(AllOf(HasSubstr("sample.npz"), HasSubstr(missing))));
  }
}

TEST_F(Trajectories, CutOffAreRefused) {
  open(sample);
  const std::string whole = testing::content_of(folder / "sample.npz");
  testing::write_file(folder / "sample.npz", whole.substr(0, whole.size() / 2));
  EXPECT_THAT([&] { Trajectory(folder / "sample.npz", diffusion); },
              ThrowsMessage<Error>(HasSubstr("sample.npz")));
}

TEST_F(Trajectories, ConfidenceOfAnotherTypeIsRefused) {
  NpzWriter writer(folder / "sample.npz");
  const std::int32_t length = 1;
  writer.add("states", {2, 2}, std::vector<std::int32_t>{1, 99, 1, 2});
  writer.add("prompt_length", {}, std::span(&length, 1));
  writer.add("confidence", {1, 2}, std::vector<std::int32_t>{0, 1});
  writer.finish();
  EXPECT_THAT([&] { Trajectory(folder / "sample.npz", diffusion); },
              ThrowsMessage<Error>(HasSubstr("confidence holds int32; float32 is right")));
}

}  // namespace
}  // namespace sinkscope
