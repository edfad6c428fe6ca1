// Samples, runs and models together.
#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "measure/measure_runs.h"
#include "support/planted_run.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using nlohmann::ordered_json;
using testing::Plant;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::TemporaryFolder;

PlantedSample at_key(int key, int steps, int positions) {
  PlantedSample sample;
  sample.steps = steps;
  sample.positions = positions;
  sample.plant = [key](int step, int, int, int) { return Plant{{key + step}}; };
  return sample;
}

class Pooling : public ::testing::Test {
 protected:
  std::filesystem::path run(const std::string& name, const std::vector<PlantedSample>& samples,
                            int layers = 1, const std::string& model = "planted") const {
    PlantedRun planted(folder / name, layers, 2, model);
    for (const PlantedSample& sample : samples) planted.add(sample);
    planted.end();
    return folder / name;
  }
  static ordered_json measure(const std::vector<std::filesystem::path>& runs) {
    return measure_runs(runs, {}, {});
  }
  TemporaryFolder folder;
};

TEST_F(Pooling, TwoRunsCountAsOneWithTheSamplesOfBoth) {
  const PlantedSample a = at_key(3, 4, 20), b = at_key(0, 7, 30), c = at_key(9, 5, 25);
  ordered_json apart = measure({run("a", {a, b}), run("c", {c})})["pooled"];
  ordered_json together = measure({run("all", {a, b, c})})["pooled"];
  EXPECT_EQ(apart["samples"], 3);
  EXPECT_EQ(apart["positions"], ordered_json({{"least", 20}, {"most", 30}}));
  EXPECT_EQ(apart["pooled_runs"].size(), 2U);
  for (ordered_json* result : {&apart, &together}) result->erase("pooled_runs");
  EXPECT_EQ(apart, together);
}

TEST_F(Pooling, ASingleRunIsItsOwnPool) {
  ordered_json measured = measure({run("a", {at_key(3, 4, 20)})});
  EXPECT_FALSE(measured.contains("models"));
  for (const char* field : {"run", "model", "intervention"}) measured["runs"][0].erase(field);
  measured["pooled"].erase("pooled_runs");
  EXPECT_EQ(measured["runs"][0], measured["pooled"]);
}

TEST_F(Pooling, SplitSinksSayOfWhichRunTheyAre) {
  PlantedSample split;
  split.steps = 1;
  split.plant = [](int, int, int, int query_class) { return Plant{{query_class == 2 ? 30 : 2}}; };
  const ordered_json list =
      measure({run("a", {at_key(3, 1, 40)}), run("b", {split})})["pooled"]["split_sinks"];
  ASSERT_EQ(list.size(), 2U) << "one a head";
  EXPECT_EQ(list[1], ordered_json({{"run", 1},
                                   {"sample", 0},
                                   {"step", 0},
                                   {"layer", 0},
                                   {"head", 1},
                                   {"masked", 30},
                                   {"unmasked", 2}}));
}

TEST_F(Pooling, CellsWeighTheSameWhateverSampleTheyAreOf) {
  // 4 steps of 20 positions and 6 of 30, one sink a map.
  const ordered_json result = measure({run("a", {at_key(0, 4, 20), at_key(0, 6, 30)})})["pooled"];
  EXPECT_DOUBLE_EQ(result["share_of_sinks"], (4.0 + 6) / (4 * 20 + 6 * 30));
}

TEST_F(Pooling, DriftIsTheMeanOverSamplesWithItsError) {
  PlantedSample left = at_key(20, 5, 30);
  left.plant = [](int step, int, int, int) { return Plant{{20 - step}}; };
  const PlantedSample right = at_key(0, 5, 30), uniform = [] {
    PlantedSample sample;
    sample.steps = 3;
    return sample;
  }();
  const ordered_json tracks = measure({run("a", {left, right, right, uniform})})["pooled"]["tracks"];
  EXPECT_NEAR(tracks["drift"], 1.0 / 3, 1e-9) << "the sample without sinks is left out";
  // Of -1, 1, 1: deviation 1.1547, divided by the root of 3.
  EXPECT_NEAR(tracks["drift_standard_error"], 2.0 / 3, 1e-9);
}

TEST_F(Pooling, ModelsStandSideBySideAndKeepWhatCannotBeMixedApart) {
  const auto a = run("a", {at_key(3, 4, 20)}, 1, "one"), b = run("b", {at_key(5, 4, 20)}, 2, "two"),
             c = run("c", {at_key(3, 4, 20)}, 1, "one");
  const ordered_json measured = measure({a, b, c});
  ASSERT_EQ(measured["models"].size(), 2U);
  EXPECT_EQ(measured["models"][0]["model"], "one");
  EXPECT_EQ(measured["models"][0]["pooled_runs"], ordered_json({a.string(), c.string()}));
  EXPECT_EQ(measured["models"][0]["samples"], 2);
  EXPECT_EQ(measured["models"][1]["sinks_per_layer"].size(), 2U);
  const ordered_json& pooled = measured["pooled"];
  EXPECT_EQ(pooled["samples"], 3);
  for (const char* by_shape : {"layers", "heads", "sinks_per_layer", "top_sink", "absorption", "overlap"})
    EXPECT_TRUE(pooled[by_shape].is_null()) << by_shape;
  EXPECT_TRUE(pooled["tokens"].is_null()) << "ids of two tokenizers";
  EXPECT_EQ(pooled["tracks"]["births"], 2 * 3 * (1 + 2 + 1));
  EXPECT_DOUBLE_EQ(pooled["share_of_sinks"], 1.0 / 20);
}

TEST_F(Pooling, ARunGivenTwiceIsRefused) {
  const auto a = run("a", {at_key(3, 4, 20)});
  EXPECT_THAT(
      [&] {
        measure({a, folder / "./a"});
      },
      ::testing::ThrowsMessage<UsageError>(::testing::HasSubstr("given twice")));
}

}  // namespace
}  // namespace sinkscope
