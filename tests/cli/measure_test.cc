// `sinkscope measure` as a user meets it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "record/python.h"
#include "support/planted_run.h"
#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using testing::names_in;
using testing::Plant;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

// Sinks come and go as a hash of the place has it; all heads have some.
PlantedSample scattered(int steps, int positions, unsigned seed) {
  PlantedSample sample;
  sample.steps = steps;
  sample.positions = positions;
  sample.array_type = ArrayType::float16;
  sample.plant = [=](int step, int layer, int head, int query_class) {
    const unsigned place = ((seed * 31U + step / 3) * 31U + layer) * 31U + head;
    const unsigned bits = (place * 2654435761U) >> 8;
    const int key = static_cast<int>((bits + (query_class == 2 && bits % 5 == 0 ? 7 : 0)) % positions);
    const int second = static_cast<int>((place + 11) % positions);
    if (key == second || bits % 7 == 0) return Plant{{key}, 0.3};
    return Plant{{key, second}, 0.1 + 0.01 * (bits % 20)};
  };
  return sample;
}

class Measure : public ::testing::Test {
 protected:
  std::string run(const std::string& name, const std::vector<PlantedSample>& samples, int layers = 3) const {
    PlantedRun planted(folder / name, layers, 2, name);
    for (const PlantedSample& sample : samples) planted.add(sample);
    planted.end();
    return folder / name;
  }
  json measure(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "measure");
    arguments.insert(arguments.end(), {"--json", "--quiet"});
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(result.error, "");
    return json::parse(result.out);
  }
  TemporaryFolder folder;
};

void expect_close(const json& value, const json& expected, const std::string& what) {
  if (expected.is_array()) {
    ASSERT_EQ(value.size(), expected.size()) << what;
    for (std::size_t i = 0; i < expected.size(); ++i) expect_close(value[i], expected[i], what);
    return;
  }
  EXPECT_NEAR(value.get<double>(), expected.get<double>(), 1e-6 * (1 + std::abs(expected.get<double>())))
      << what;
}

TEST_F(Measure, AgreesWithNumPyOverTwoRuns) {
  REQUIRE_NUMPY(python);
  const std::string a = run("a", {scattered(23, 60, 1), scattered(9, 41, 2)}),
                    b = run("b", {scattered(31, 35, 3)});
  const auto judged =
      test::run_program(*python + " " + SINKSCOPE_SOURCE_DIR + "/tests/measure/reference.py " + a + " " + b);
  ASSERT_EQ(judged.status, 0) << judged.output;
  const json expected = json::parse(judged.output);
  ASSERT_GT(expected["split_count"], 0);
  // The reference takes token ids of both runs together, which the program does for one model only.
  const std::string same_model = content_of(folder / "a/run.json");
  write_file(folder / "b/run.json", same_model);
  const json pooled = measure({a, b})["pooled"];
  for (const char* field :
       {"share_of_sinks", "sinks_per_layer", "top_sink", "split_maps", "split_count", "absorption"})
    expect_close(pooled[field], expected[field], field);
  for (const auto& [name, value] : expected["tracks"].items())
    expect_close(pooled["tracks"][name], value, name);
  for (std::size_t i = 0; i < pooled["share_by_epsilon"].size(); ++i)
    expect_close(pooled["share_by_epsilon"][i]["share"], expected["share_by_epsilon"][i], "share_by_epsilon");
  for (const auto& [name, value] : expected["token"].items())
    expect_close(pooled["tokens"][0][name], value, "token " + name);
  expect_close(pooled["status"]["masked"]["frequency"], expected["masked_sinks"], "masked_sinks");
  expect_close(pooled["where"]["mean_relative_position"], expected["mean_relative_position"], "positions");
  expect_close(pooled["overlap"]["layers"][0], expected["layer_overlap"], "layer_overlap");
}

TEST_F(Measure, ShowsRunsSideBySideUnderTheRuleAndTheAggregation) {
  const std::string a = run("a", {scattered(8, 40, 1)}), b = run("b", {scattered(8, 40, 2)});
  const auto result = run_program({"measure", a, b, "--epsilon", "2.5"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(
      result.out,
      AllOf(HasSubstr("run 1: " + a), HasSubstr("run 2: " + b), HasSubstr("pooled: all runs"),
            HasSubstr("Share of sinks by threshold (rule paper, scale sum, epsilon 2.5; sinks / cells"),
            HasSubstr("tracks.drift"), HasSubstr("Absorption by layer")));
}

TEST_F(Measure, WritesTheSameNumbersAsJsonAndCsv) {
  const std::string a = run("a", {scattered(8, 40, 1)});
  const json printed = measure({a, "--out", folder / "new/out"});
  EXPECT_EQ(json::parse(content_of(folder / "new/out/measure.json")), printed);
  EXPECT_THAT(names_in(folder / "new/out"),
              ::testing::ElementsAre("effect.csv", "heads.csv", "jumps.csv", "layers.csv", "lifetimes.csv",
                                     "measure.json", "overlap.csv", "positions.csv", "share_by_epsilon.csv",
                                     "split_sinks.csv", "summary.csv", "tokens.csv"));
  const std::string layers = content_of(folder / "new/out/layers.csv");
  EXPECT_THAT(layers,
              HasSubstr("run,model,pooled,rule,scale,epsilon,z,steepness,top_k,aggregation,measurement,"
                        "layer,value\n"));
  EXPECT_THAT(layers, HasSubstr(a +
                                ",a,,paper,sum,3.0,,,,\"mean over samples, steps and heads of the number of "
                                "sinks\",sinks_per_layer,1," +
                                printed["runs"][0]["sinks_per_layer"][1].dump() + "\n"));
  EXPECT_THAT(content_of(folder / "new/out/summary.csv"),
              HasSubstr(",tracks.drift," + printed["pooled"]["tracks"]["drift"].dump() + "\n"));
}

TEST_F(Measure, EveryOptionChangesWhatItShould) {
  const std::string a = run("a", {scattered(8, 40, 1)});
  const auto share = [&](std::vector<std::string> options) {
    options.insert(options.begin(), a);
    return measure(options)["pooled"]["share_of_sinks"].get<double>();
  };
  const double plain = share({});
  EXPECT_EQ(share({"--epsilon", "3"}), plain);
  EXPECT_LT(share({"--epsilon", "6"}), plain);
  EXPECT_EQ(share({"--scale", "mean"}), 0) << "no mean exceeds another by 3";
  EXPECT_GT(share({"--scale", "percent", "--epsilon", "5"}),
            share({"--scale", "percent", "--epsilon", "20"}));
  EXPECT_LT(share({"--rule", "zscore", "--z", "5"}), share({"--rule", "zscore", "--z", "1"}));
  EXPECT_LT(share({"--rule", "visible"}), share({"--rule", "visible", "--epsilon", "0.05"}));
  EXPECT_EQ(share({"--rule", "topk"}), 1.0 / 40);
  EXPECT_EQ(share({"--rule", "topk", "--top-k", "4"}), 4.0 / 40);
  const auto membership = [&](const char* steepness) {
    return measure({a, "--rule", "soft", "--steepness", steepness})["pooled"]["mean_membership"]
        .get<double>();
  };
  EXPECT_GT(membership("0.1"), membership("5"));
  EXPECT_LT(measure({a, "--calibrate", "0.01"})["pooled"]["calibration"]["share"],
            measure({a, "--calibrate", "0.03"})["pooled"]["calibration"]["share"]);
}

TEST_F(Measure, TokensAreNamedByTheTokenizer) {
  const std::string a = run("a", {scattered(8, 40, 1)});
  const auto nameless = run_program({"measure", a, "--json"});
  EXPECT_EQ(nameless.status, 0);
  EXPECT_THAT(nameless.error, HasSubstr("--tokenizer would give them"));
  EXPECT_TRUE(json::parse(nameless.out)["runs"][0]["tokens"][0]["text"].is_null());
  const json named = measure({a, "--tokenizer", "tiny-llada"});
  EXPECT_FALSE(named["runs"][0]["tokens"][0]["text"].get<std::string>().empty());
  EXPECT_EQ(run_program({"measure", a, "--tokenizer", folder / "nowhere"}).status, 1);
}

TEST_F(Measure, ARealRunIsMeasuredWithItsOwnTokens) {
  const std::string real = folder / "real";
  ASSERT_EQ(run_program({"run", "tiny-llada", "--prompt", "The cat", "--gen-len", "32", "--steps", "16",
                         "--quiet", "--run-dir", real})
                .status,
            0);
  const json result = measure({real})["runs"][0];
  EXPECT_EQ(result["model"], "tiny-llada");
  EXPECT_EQ(result["steps"], 16);
  // sinks.md: 3.0 to 3.3 % on longer runs of this model.
  EXPECT_NEAR(result["share_of_sinks"].get<double>(), 0.032, 0.015);
  EXPECT_NEAR(result["calibration"]["share"].get<double>(), 0.04, 0.001);
  for (const auto& token : result["tokens"]) EXPECT_FALSE(token["text"].get<std::string>().empty());
}

TEST_F(Measure, WrongUseIsNamed) {
  const std::string a = run("a", {scattered(8, 40, 1)});
  const auto refused = [&](std::vector<std::string> options, const std::string& message) {
    options.insert(options.begin(), {"measure", a});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_EQ(result.out, "");
  };
  refused({"--rule", "zscore", "--epsilon", "3"},
          "--epsilon is of the rules paper and visible; --rule is zscore");
  refused({"--z", "3"}, "--z is of the rules zscore and soft; --rule is paper");
  refused({"--steepness", "3"}, "--steepness is of the rule soft");
  refused({"--top-k", "3"}, "--top-k is of the rule topk");
  refused({"--rule", "best"}, "'best' is none of paper, zscore, visible, topk, soft");
  refused({"--scale", "log"}, "none of sum, mean, percent");
  refused({"--epsilon", "-1"}, "epsilon must be a finite number of at least 0, not -1");
  refused({"--rule", "soft", "--steepness", "0"}, "steepness must be");
  refused({"--calibrate", "1"}, "--calibrate takes a share between 0 and 1");
  refused({"--out", a + "/run.json"}, "is a file");
  refused({a}, "given twice");
  EXPECT_EQ(run_program({"measure"}).status, 2);
}

TEST_F(Measure, ABrokenRunLeavesNothingBehind) {
  const std::string a = run("a", {scattered(8, 40, 1)}), b = run("b", {scattered(8, 40, 2)});
  write_file(folder / "b/sample_00000.npz", "no archive");
  const auto result = run_program({"measure", a, b, "--out", folder / "out", "--quiet"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("b/sample_00000.npz"));
  EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1);
  EXPECT_EQ(result.out, "");
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(Measure, ManySamplesTakeTheMemoryOfOne) {
  PlantedSample sample;
  sample.steps = 64;
  sample.positions = 128;
  sample.plant = [](int step, int, int, int) { return Plant{{step}}; };
  const std::string one = run("one", {sample}, 16), many = run("many", {sample}, 16);  // 3 MiB each
  std::string lines;
  for (int i = 0; i < 40; ++i) {
    lines += "{\"index\":" + std::to_string(i) + "}\n";
    if (i > 0) std::filesystem::create_hard_link(folder / "many/sample_00000.npz", sample_path(many, i));
  }
  write_file(folder / "many/samples.jsonl", lines);
  const auto few = run_program({"measure", one, "--quiet"}), all = run_program({"measure", many, "--quiet"});
  ASSERT_EQ(all.status, 0) << all.error;
  EXPECT_LT(all.peak_kib, few.peak_kib + 8 * 1024);
}

}  // namespace
}  // namespace sinkscope
