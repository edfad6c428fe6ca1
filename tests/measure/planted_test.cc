// Planted sinks must come back exactly.
#include <gmock/gmock.h>

#include "measure/measure_runs.h"
#include "support/planted_run.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using nlohmann::ordered_json;
using ::testing::DoubleNear;
using testing::Plant;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::TemporaryFolder;

constexpr int layers = 2, heads = 2, maps = layers * heads;
constexpr int positions = 40, steps = 10;  // PlantedSample's own
// Every query gives the sink a quarter: C = 10, and 30/39 for each of the other keys.
constexpr double sink_column = 10, other_column = 30.0 / 39;

// Results of one run with these samples.
ordered_json measure(const std::vector<PlantedSample>& samples, const MeasureOptions& options = {}) {
  const TemporaryFolder folder;
  PlantedRun run(folder / "run", layers, heads);
  for (const PlantedSample& sample : samples) run.add(sample);
  run.end();
  const ordered_json measured = measure_runs({folder / "run"}, options, {});
  EXPECT_EQ(measured["runs"].size(), 1U);
  return measured["runs"][0];
}

// A sample in which all queries of all maps look at the key of the step; -1 = at none.
PlantedSample one_key(const std::function<int(int step)>& key) {
  PlantedSample sample;
  sample.plant = [key](int step, int, int, int) { return key(step) < 0 ? Plant{} : Plant{{key(step)}}; };
  return sample;
}

TEST(PlantedSinks, ThatStay) {
  const ordered_json result = measure({one_key([](int) { return 3; })});
  EXPECT_EQ(result["samples"], 1);
  EXPECT_EQ(result["steps"], steps);
  EXPECT_EQ(result["rule"], "paper");
  EXPECT_EQ(result["scale"], "sum");
  EXPECT_EQ(result["epsilon"], 3.0);
  EXPECT_DOUBLE_EQ(result["share_of_sinks"], 1.0 / positions);
  EXPECT_EQ(result["sinks_per_layer"], ordered_json({1.0, 1.0}));
  EXPECT_EQ(result["top_sink"], ordered_json({{10.0, 10.0}, {10.0, 10.0}}));
  const ordered_json& tracks = result["tracks"];
  EXPECT_EQ(tracks["births"], 0);
  EXPECT_EQ(tracks["deaths"], 0);
  EXPECT_EQ(tracks["lifetimes"],
            ordered_json::array({{{"steps", steps}, {"lives", maps}, {"touching_an_end", maps}}}));
  EXPECT_EQ(tracks["jumps"], ordered_json::array());
  EXPECT_TRUE(tracks["mean_jump"].is_null());
  EXPECT_EQ(tracks["static_share"], 1.0);
  EXPECT_EQ(tracks["jaccard"], 1.0);
  EXPECT_EQ(tracks["drift"], 0.0);
  EXPECT_EQ(tracks["temporal_variance"], 0.0);
  const double high = maps * sink_column, low = maps * other_column;
  EXPECT_THAT(
      tracks["spatial_variance"].get<double>(),
      DoubleNear(((high - maps) * (high - maps) + 39 * (low - maps) * (low - maps)) / positions, 1e-3));
  EXPECT_EQ(result["split_count"], 0);
  EXPECT_EQ(result["split_maps"], maps * steps);
}

TEST(PlantedSinks, AbsorbAndOverlap) {
  const ordered_json everywhere = measure({one_key([](int) { return 3; })});
  for (const auto& share : everywhere["absorption"])
    EXPECT_THAT(share.get<double>(), DoubleNear(sink_column / positions, 1e-6));
  EXPECT_EQ(everywhere["overlap"]["layers"], ordered_json({{1.0, 1.0}, {1.0, 1.0}}));
  EXPECT_EQ(everywhere["overlap"]["heads"], ordered_json({1.0, 1.0}));
  PlantedSample own_keys;  // layer 0: heads at 1 and 2; layer 1: both at 2
  own_keys.plant = [](int, int layer, int head, int) { return Plant{{layer == 1 ? 2 : 1 + head}}; };
  const ordered_json result = measure({own_keys});
  EXPECT_EQ(result["overlap"]["layers"], ordered_json({{1.0, 0.5}, {0.5, 1.0}}));
  EXPECT_EQ(result["overlap"]["heads"], ordered_json({0.0, 1.0}));
}

TEST(PlantedSinks, ThatMove) {
  for (const int distance : {3, -3}) {
    const ordered_json result = measure({one_key([&](int t) { return 20 - 5 * distance + distance * t; })});
    const ordered_json& tracks = result["tracks"];
    EXPECT_EQ(tracks["births"], maps * (steps - 1));
    EXPECT_EQ(tracks["deaths"], maps * (steps - 1));
    EXPECT_EQ(tracks["lifetimes"],
              ordered_json::array({{{"steps", 1}, {"lives", maps * steps}, {"touching_an_end", 2 * maps}}}));
    EXPECT_EQ(tracks["jumps"], ordered_json::array({{{"distance", 3}, {"jumps", maps * (steps - 1)}}}));
    EXPECT_EQ(tracks["mean_jump"], 3.0);
    EXPECT_EQ(tracks["static_share"], 0.0);
    EXPECT_EQ(tracks["jaccard"], 0.0);
    EXPECT_THAT(tracks["drift"].get<double>(), DoubleNear(distance, 1e-9));
    EXPECT_THAT(tracks["temporal_variance"].get<double>(), DoubleNear(9 * 8.25, 1e-9));  // Var(0...9) = 8.25
  }
}

TEST(PlantedSinks, OfOneStep) {
  PlantedSample sample;
  sample.plant = [](int step, int layer, int head, int) {
    return step == 4 && layer == 1 && head == 0 ? Plant{{11}} : Plant{};
  };
  const ordered_json result = measure({sample});
  const ordered_json& tracks = result["tracks"];
  EXPECT_DOUBLE_EQ(result["share_of_sinks"], 1.0 / (steps * maps * positions));
  EXPECT_EQ(tracks["births"], 1);
  EXPECT_EQ(tracks["deaths"], 1);
  EXPECT_EQ(tracks["lifetimes"], ordered_json::array({{{"steps", 1}, {"lives", 1}, {"touching_an_end", 0}}}));
  EXPECT_EQ(tracks["jaccard"], 0.0) << "of the two pairs with a sink in one of the steps";
  EXPECT_TRUE(tracks["drift"].is_null()) << "one step has no slope";
  EXPECT_EQ(tracks["jump_count"], 0) << "both steps must have a sink";
  EXPECT_EQ(result["top_sink"], ordered_json({{nullptr, nullptr}, {10.0, nullptr}}));
  EXPECT_DOUBLE_EQ(result["sinks_per_layer"][1], 1.0 / (steps * heads));
  EXPECT_THAT(result["largest_column"][1][0].get<double>(), DoubleNear((10 + 9.0) / 10, 1e-6));
}

TEST(PlantedSinks, StaticFromNineTenthsOfTheStepsOn) {
  PlantedSample sample;  // key 7 misses one step of ten, key 30 two
  sample.plant = [](int step, int, int, int) {
    std::vector<int> keys;
    if (step != 2) keys.push_back(7);
    if (step > 1) keys.push_back(30);
    return Plant{keys};
  };
  const ordered_json tracks = measure({sample})["tracks"];
  EXPECT_EQ(tracks["static_share"], 0.5);
  EXPECT_EQ(tracks["lives"], maps * 3) << "7 lives twice";
  // Pairs 0|1 {7}{7}, 1|2 {7}{30}, 2|3 {30}{7,30}, then six equal ones.
  EXPECT_DOUBLE_EQ(tracks["jaccard"], (1 + 0 + 0.5 + 6) / 9);
}

TEST(PlantedSinks, ThatAreSplit) {
  PlantedSample sample;  // in one head masked queries look at 30, the others at 2; elsewhere all at 5
  sample.plant = [](int, int layer, int head, int query_class) {
    if (layer == 1 && head == 1) return Plant{{query_class == 2 ? 30 : 2}};
    return Plant{{5}};
  };
  const ordered_json result = measure({sample});
  EXPECT_EQ(result["split_count"], steps);
  EXPECT_DOUBLE_EQ(result["split_share"], 1.0 / maps);
  ASSERT_EQ(result["split_sinks"].size(), steps);
  for (int t = 0; t < steps; ++t)
    EXPECT_EQ(result["split_sinks"][t],
              ordered_json(
                  {{"sample", 0}, {"step", t}, {"layer", 1}, {"head", 1}, {"masked", 30}, {"unmasked", 2}}));
}

TEST(PlantedSinks, AreSplitOnlyWhereBothClassesHaveOne) {
  PlantedSample one_side;  // masked queries have a sink, the others look evenly
  one_side.plant = [](int, int, int, int query_class) { return query_class == 2 ? Plant{{30}} : Plant{}; };
  EXPECT_EQ(measure({one_side})["split_count"], 0);
  PlantedSample nothing_masked;
  nothing_masked.id = [](int, int position) { return position; };
  nothing_masked.mask_id = 1000;
  const ordered_json result = measure({nothing_masked});
  EXPECT_EQ(result["split_maps"], 0);
  EXPECT_TRUE(result["split_share"].is_null());
}

TEST(PlantedSinks, AreTokensInTheirState) {
  // Position 8 is a mask at step 0 and the token 50 from step 1 on.
  const ordered_json result = measure({one_key([](int) { return 8; })});
  ASSERT_EQ(result["tokens"].size(), 2U);
  const ordered_json& token = result["tokens"][0];
  EXPECT_EQ(token["id"], 50);
  EXPECT_TRUE(token["text"].is_null());
  EXPECT_EQ(token["frequency"], 0.9);
  EXPECT_DOUBLE_EQ(token["share"], 45.0 / 400);  // 0 + 1 + ... + 9 of 400 (step, position)
  EXPECT_DOUBLE_EQ(token["lift"], 0.9 / (45.0 / 400));
  EXPECT_EQ(result["tokens"][1]["id"], 99);
  EXPECT_EQ(result["status"]["masked"]["frequency"], 0.1);
  EXPECT_EQ(result["status"]["decoded"]["frequency"], 0.9);
  EXPECT_EQ(result["status"]["prompt"]["frequency"], 0.0);
  EXPECT_EQ(result["status"]["prompt"]["share"], 0.2);
}

TEST(PlantedSinks, HaveAPlaceAndADistanceToTheMasks) {
  // Masks begin at 8 + t: the distance of position 8 is t.
  const ordered_json where = measure({one_key([](int) { return 8; })})["where"];
  EXPECT_EQ(where["mean_mask_distance"], 4.5);
  EXPECT_EQ(where["mask_distances"][3]["distance"], 3);
  EXPECT_EQ(where["mask_distances"][3]["frequency"], 0.1);
  EXPECT_DOUBLE_EQ(where["mean_relative_position"], 8.5 / 40);
  EXPECT_EQ(where["relative_positions"][2]["frequency"], 1.0);
  EXPECT_EQ(where["without_masks"]["frequency"], 0.0);
}

TEST(PlantedSinks, InOneHeadMoveWithTheHead) {
  const auto top_of = [](int planted_head) {
    PlantedSample sample;
    sample.plant = [=](int, int layer, int head, int) {
      return layer == 0 && head == planted_head ? Plant{{5}, 0.5} : Plant{{5}};
    };
    return measure({sample})["top_sink"];
  };
  EXPECT_EQ(top_of(0), ordered_json({{20.0, 10.0}, {10.0, 10.0}}));
  EXPECT_EQ(top_of(1), ordered_json({{10.0, 20.0}, {10.0, 10.0}}));
}

TEST(PlantedSinks, OfUniformMapsThereAreNone) {
  const ordered_json result = measure({PlantedSample{}}, {default_detection(SinkRule::paper), 0.04});
  EXPECT_EQ(result["share_of_sinks"], 0.0);
  for (const auto& point : result["share_by_epsilon"]) EXPECT_EQ(point["share"], 0.0);
  EXPECT_EQ(result["tokens"], ordered_json::array());
  EXPECT_TRUE(result["tracks"]["static_share"].is_null());
  EXPECT_TRUE(result["tracks"]["jaccard"].is_null());
}

TEST(PlantedSinks, ComeBackFromHalfPrecisionToo) {
  PlantedSample half = one_key([](int t) { return 2 * t; });
  half.array_type = ArrayType::float16;
  const ordered_json result = measure({half});
  EXPECT_DOUBLE_EQ(result["share_of_sinks"], 1.0 / positions);
  EXPECT_THAT(result["tracks"]["drift"].get<double>(), DoubleNear(2, 1e-9));
}

TEST(PlantedSinks, ByEveryRule) {
  PlantedSample sample;
  sample.plant = [](int, int, int, int) { return Plant{{4, 9}, 0.4}; };  // C = 16 twice, 8/38 else
  for (const SinkRule rule : {SinkRule::paper, SinkRule::zscore, SinkRule::visible, SinkRule::soft}) {
    MeasureOptions options{default_detection(rule)};
    const ordered_json result = measure({sample}, options);
    EXPECT_EQ(result["share_of_sinks"], 2.0 / positions) << name_of(rule);
    EXPECT_EQ(result["rule"], name_of(rule));
  }
  MeasureOptions topk{default_detection(SinkRule::topk)};
  EXPECT_EQ(measure({sample}, topk)["share_of_sinks"], 1.0 / positions);
  topk.detection.top_k = 3;
  const ordered_json result = measure({sample}, topk);
  EXPECT_EQ(result["share_of_sinks"], 3.0 / positions);
  EXPECT_EQ(result["top_k"], 3);
  EXPECT_TRUE(result["epsilon"].is_null());
  EXPECT_TRUE(result["calibration"].is_null());
  EXPECT_EQ(result["share_by_epsilon"], ordered_json::array());
}

TEST(PlantedSinks, TheScaleIsThatOfEpsilonAndOfTheColumnsShown) {
  MeasureOptions options;
  options.detection.scale = SinkScale::percent;
  options.detection.epsilon = 20;  // 25 % against 30/39 of 2.5 % + 20
  const ordered_json result = measure({one_key([](int) { return 3; })}, options);
  EXPECT_EQ(result["share_of_sinks"], 1.0 / positions);
  EXPECT_THAT(result["top_sink"][0][0].get<double>(), DoubleNear(25, 1e-9));
  options.detection.epsilon = 24;
  EXPECT_EQ(measure({one_key([](int) { return 3; })}, options)["share_of_sinks"], 0.0);
}

TEST(Sweep, FallsWhereTheSinksEnd) {
  const ordered_json result = measure({one_key([](int) { return 3; })});
  for (const auto& point : result["share_by_epsilon"])  // C - the others' mean = 9.2308
    EXPECT_EQ(point["share"], point["epsilon"].get<double>() < 9.2308 ? 1.0 / positions : 0.0) << point;
}

TEST(Calibration, FindsTheSmallestEpsilonWithAtMostTheWantedShare) {
  PlantedSample sample;  // a fifth of the keys in steps of size
  sample.plant = [](int step, int, int, int) { return Plant{{3}, 0.1 + 0.05 * step}; };
  MeasureOptions options;
  options.wanted_share = 0.01;  // 4 of the 10 steps
  const ordered_json result = measure({sample}, options);
  EXPECT_EQ(result["calibration"]["wanted_share"], 0.01);
  EXPECT_DOUBLE_EQ(result["calibration"]["share"], 0.01);
  // Step 5, share 0.35, is the first that must go: C = 14 against 26/39.
  EXPECT_THAT(result["calibration"]["epsilon"].get<double>(), DoubleNear(14 - 26.0 / 39, 13.4 / 2048));
  options.detection.epsilon = result["calibration"]["epsilon"];
  EXPECT_DOUBLE_EQ(measure({sample}, options)["share_of_sinks"], 0.01);
}

}  // namespace
}  // namespace sinkscope
