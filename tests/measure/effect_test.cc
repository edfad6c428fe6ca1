#include "measure/effect.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "measure/compare_runs.h"
#include "measure/measure_runs.h"
#include "support/planted_run.h"
#include "support/planted_trajectory.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using nlohmann::ordered_json;
using ::testing::AllOf;
using testing::growing;
using ::testing::HasSubstr;
using testing::opening;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::PlantedTrajectory;
using testing::TemporaryFolder;
using ::testing::ThrowsMessage;
using testing::TrajectoryRun;

constexpr float none = std::numeric_limits<float>::quiet_NaN();

TEST(Effect, OfAStepIsPartedByRemovedMass) {
  EffectSums sums;
  // Mass 4, 1, 3, 2, 2 hundredths; the more of it, the less the confidence, but for one exchange.
  const std::vector<RecordedEffect> step{{0.5, false, -0.4, -0.5, 0.04},
                                         {0.1, true, 0.1, 0, 0.01},
                                         {0.4, true, -0.1, -0.2, 0.03},
                                         {0.2, true, -0.2, -0.1, 0.02},
                                         {0.3, true, 0, -0.05, 0.02}};
  add_step(sums, step);
  const ordered_json json = effect_json(sums);
  EXPECT_EQ(json["steps"], 1);
  EXPECT_EQ(json["predictions"], 5);
  EXPECT_DOUBLE_EQ(json["mean_kl"], 0.3);
  EXPECT_DOUBLE_EQ(json["agreement"], 0.8);
  EXPECT_NEAR(json["mean_confidence_change"], -0.12, 1e-12);
  EXPECT_NEAR(json["mean_removed_mass"], 0.024, 1e-12);
  // Places 0 to 4 in quarters 0 0 1 2 3; ties in the order of positions.
  EXPECT_EQ(json["quarters"][0]["predictions"], 2);
  EXPECT_DOUBLE_EQ(json["quarters"][0]["mean_kl"], 0.15);
  EXPECT_DOUBLE_EQ(json["quarters"][1]["mean_kl"], 0.3);
  EXPECT_DOUBLE_EQ(json["quarters"][2]["mean_kl"], 0.4);
  EXPECT_DOUBLE_EQ(json["quarters"][3]["mean_kl"], 0.5);
  EXPECT_EQ(json["quarters"][3]["agreement"], 0);
  // scipy.stats.spearmanr and kendalltau of these five
  EXPECT_NEAR(json["mass_and_confidence"]["spearman"], -0.8207826816681234, 1e-12);
  EXPECT_NEAR(json["mass_and_confidence"]["kendall"], -0.7378647873726218, 1e-12);
  EXPECT_EQ(json["mass_and_confidence"]["predictions"], 5);
}

TEST(Effect, StepsThatRemovedNothingAreLeftOut) {
  EffectSums sums;
  add_step(sums, std::vector<RecordedEffect>{{0, true, 0, 0, 0}, {0, true, 0, 0, 0}});
  EXPECT_EQ(effect_json(sums)["steps"], 0);
  EXPECT_TRUE(effect_json(sums)["mean_kl"].is_null());
  EXPECT_TRUE(effect_json(sums)["mass_and_confidence"]["spearman"].is_null());
  EXPECT_TRUE(effect_json(EffectSums{}).is_null());
}

TEST(Effect, CorrelationsAreMeansOverStepsByTheirPredictions) {
  EffectSums sums, other;
  add_step(sums, std::vector<RecordedEffect>{{0, true, 0.1, 0, 0.1}, {0, true, 0.2, 0, 0.2}});
  add_step(other, std::vector<RecordedEffect>{
                      {0, true, 0.3, 0, 0.1}, {0, true, 0.2, 0, 0.2}, {0, true, 0.1, 0, 0.3}});
  add_step(other, std::vector<RecordedEffect>{{0, true, 0.3, 0, 0.1}});  // one has no order
  add(sums, other);
  const ordered_json json = effect_json(sums);
  EXPECT_EQ(json["steps"], 3);
  EXPECT_EQ(json["mass_and_confidence"]["steps"], 2);
  EXPECT_NEAR(json["mass_and_confidence"]["spearman"], (2 - 3) / 5.0, 1e-12);
  EXPECT_NEAR(json["mass_and_confidence"]["kendall"], (2 - 3) / 5.0, 1e-12);
  EXPECT_TRUE(json["mass_and_probability"]["kendall"].is_null());
}

TEST(Effect, IsMeasuredOfPlantedRuns) {
  const TemporaryFolder folder;
  PlantedRun run(folder / "run", 1, 1);
  PlantedSample sample;
  sample.positions = 16;
  sample.steps = 3;
  sample.effect = [](int step, int position) {
    const float share = step == 0 ? 0 : 0.01F * static_cast<float>(position);
    return PlantedSample::Effect{10 * share, -share, -2 * share, share, position < 12};
  };
  run.add(sample);
  run.add(sample);
  run.end();
  const ordered_json measured = measure_runs({folder / "run"}, {}, {});
  const ordered_json& effect = measured["pooled"]["effect"];
  EXPECT_EQ(measured["runs"][0]["effect"], effect);
  // Steps 1 and 2 of two samples: positions 9 to 15, then 10 to 15.
  EXPECT_EQ(effect["steps"], 4);
  EXPECT_EQ(effect["predictions"], 2 * (7 + 6));
  EXPECT_NEAR(effect["mean_kl"], 0.1 * (84 + 75) / 13, 1e-6);
  EXPECT_NEAR(effect["agreement"], 5.0 / 13, 1e-12);
  EXPECT_NEAR(effect["mass_and_confidence"]["spearman"], -1, 1e-12);
  EXPECT_NEAR(effect["mass_and_probability"]["kendall"], -1, 1e-12);
  EXPECT_LT(effect["quarters"][0]["mean_removed_mass"], effect["quarters"][3]["mean_removed_mass"]);
}

TEST(Effect, IsNullWhereNobodyAskedForIt) {
  const TemporaryFolder folder;
  PlantedRun run(folder / "run", 1, 1);
  run.add({});
  run.end();
  EXPECT_TRUE(measure_runs({folder / "run"}, {}, {})["pooled"]["effect"].is_null());
}

// Two positions of four are masked at two steps.
PlantedTrajectory with_effect() {
  PlantedTrajectory sample = opening({11, 12}, {{1}, {0}});
  sample.queries_without_key = {{0, 0, 0, 0}, {3, 0, 0, 0}};
  sample.effect = {{{none, none, 0, 0}, {none, none, 0.5F, none}},
                   {{none, none, 0, 0}, {none, none, -0.25F, none}},
                   {{none, none, 0, 0}, {none, none, -0.5F, none}},
                   {{none, none, 0, 0}, {none, none, 0.125F, none}}};
  sample.effect_agrees = {{255, 255, 1, 1}, {255, 255, 0, 255}};
  return sample;
}

TEST(Effect, OfComparedRunsIsToldOfEach) {
  const TemporaryFolder folder;
  TrajectoryRun a(folder / "a"), b(folder / "b");
  a.add(0, opening({11, 12}, {{1}, {0}}));
  b.add(0, with_effect());
  const ordered_json compared = compare_runs(a.end(), b.end(), {}, {});
  EXPECT_TRUE(compared["pooled"]["effect"]["a"].is_null());
  const ordered_json& effect = compared["pooled"]["effect"]["b"];
  EXPECT_EQ(effect, compared["samples"][0]["effect"]["b"]);
  EXPECT_EQ(effect["steps"], 1);
  EXPECT_EQ(effect["mean_kl"], 0.5);
  EXPECT_EQ(effect["agreement"], 0);
  EXPECT_EQ(effect["mean_confidence_change"], -0.25);
  EXPECT_EQ(compared["samples"][0]["confidence"]["keys_masked"]["masked_keys"], 1);
  EXPECT_THAT(compared_samples(compared).content,
              AllOf(HasSubstr("effect_b_mean_kl"), HasSubstr(",1,1,0.5,0")));
}

TEST(Effect, OfTokensIsComparedWithinASample) {
  const TemporaryFolder folder;
  TrajectoryRun a(folder / "a", std::nullopt), b(folder / "b", std::nullopt);
  PlantedTrajectory sample = growing({5, 6, 7, 8}, 4);
  a.add(0, sample);
  sample.effect = {{{0}, {0.1F}, {0.2F}, {0.3F}},
                   {{0}, {-0.1F}, {-0.2F}, {-0.3F}},
                   {{0}, {-0.1F}, {-0.2F}, {-0.3F}},
                   {{0}, {0.1F}, {0.2F}, {0.3F}}};
  sample.effect_agrees = {{1}, {1}, {1}, {0}};
  b.add(0, sample);
  const ordered_json compared = compare_runs(a.end(), b.end(), {}, {});
  const ordered_json& effect = compared["pooled"]["effect"]["b"];
  EXPECT_EQ(effect["steps"], 3);
  EXPECT_NEAR(effect["mean_kl"], 0.2, 1e-6);
  EXPECT_NEAR(effect["agreement"], 2.0 / 3, 1e-12);
  EXPECT_NEAR(effect["mass_and_confidence"]["spearman"], -1, 1e-12);
}

TEST(Effect, OfBrokenFilesIsRefused) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& name, auto change, const std::string& message) {
    TrajectoryRun a(folder / (name + "a")), b(folder / (name + "b"));
    PlantedTrajectory sample = with_effect();
    a.add(0, sample);
    change(sample);
    b.add(0, sample);
    EXPECT_THAT([&] { compare_runs(a.end(), b.end(), {}, {}); },
                ThrowsMessage<Error>(AllOf(HasSubstr("sample_00000.npz"), HasSubstr(message))));
  };
  refused(
      "missing", [](auto& s) { s.effect.pop_back(); }, "removed_mass is missing");
  refused(
      "shape", [](auto& s) { s.effect[0].pop_back(); }, "effect_kl has the shape [1,4]");
  refused(
      "negative", [](auto& s) { s.effect[0][1][2] = -1; }, "effect_kl is -1 at step 1, position 2");
  refused(
      "nan", [](auto& s) { s.effect[1][1][2] = none; }, "effect_confidence is nan at step 1");
  refused(
      "share", [](auto& s) { s.effect[3][1][2] = 1.5F; }, "removed_mass is 1.5 at step 1");
  refused(
      "number", [](auto& s) { s.effect[0][1][3] = 0; }, "effect_kl is 0 at step 1, position 3");
  refused(
      "agrees", [](auto& s) { s.effect_agrees[1][2] = 7; }, "effect_agrees is 7 at step 1");
}

}  // namespace
}  // namespace sinkscope
