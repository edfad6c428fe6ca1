// `sinkscope plot` as a user meets it.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/csv.h"
#include "support/picture.h"
#include "support/planted_run.h"
#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::names_in;
using testing::Plant;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::read_csv;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

class PlotProgram : public ::testing::Test {
 protected:
  std::string run(const std::string& name) const {
    PlantedSample sample;
    sample.plant = [](int step, int layer, int head, int) {
      const int key = (7 * layer + 3 * head + step / 3) % 40;
      return (step + layer) % 5 == 4 ? Plant{{key, (key + 9) % 40}, 0.2} : Plant{{key}, 0.15 + 0.02 * head};
    };
    PlantedRun planted(folder / name, 3, 2, name);
    planted.add(sample);
    planted.add(sample);
    planted.end();
    return folder / name;
  }
  testing::ProgramResult plot(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), "plot");
    arguments.insert(arguments.end(), {"-o", folder / "out"});
    return run_program(arguments);
  }
  TemporaryFolder folder;
};

TEST_F(PlotProgram, HasTheNumbersOfMeasure) {
  const std::string a = run("a");
  const auto drawn = plot({a, "--quiet", "--epsilon", "2"});
  ASSERT_EQ(drawn.status, 0) << drawn.error;
  EXPECT_EQ(drawn.error, "");
  EXPECT_EQ(std::count(drawn.out.begin(), drawn.out.end(), '\n'), 33);
  EXPECT_THAT(drawn.out, ::testing::StartsWith((folder / "out/heatmap.png\n").string()));
  const auto measured = run_program({"measure", a, "--json", "--quiet", "--epsilon", "2"});
  const json expected = json::parse(measured.out)["pooled"];
  const auto table = [&](const std::string& name) {
    return read_csv(content_of(folder / ("out/" + name + ".csv")));
  };
  for (const auto& [name, field, column] :
       {std::tuple("layers", "sinks_per_layer", "sinks"), {"absorption", "absorption", "share"}})
    for (std::size_t l = 0; l < 3; ++l)
      EXPECT_NEAR(std::stod(table(name)[l][column]), expected[field][l].get<double>(), 1e-9) << name;
  for (std::size_t i = 0; i < expected["share_by_epsilon"].size(); ++i)
    EXPECT_NEAR(1 - std::stod(table("epsilon")[i]["share_of_non_sinks"]),
                expected["share_by_epsilon"][i]["share"].get<double>(), 1e-9);
  const auto lives = table("lifetimes");
  ASSERT_EQ(lives.size(), expected["tracks"]["lifetimes"].size());
  for (std::size_t i = 0; i < lives.size(); ++i)
    EXPECT_EQ(std::stoi(lives[i].at("lives")), expected["tracks"]["lifetimes"][i]["lives"]);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(std::stoi(table("tokens")[i]["id"]), expected["tokens"][i]["id"]);
    EXPECT_NEAR(std::stod(table("tokens")[i]["lift"]), expected["tokens"][i]["lift"].get<double>(), 1e-9);
  }
  for (const auto& row : table("layer-head"))
    EXPECT_NEAR(
        std::stod(row.at("value")),
        expected["top_sink"][std::stoul(row.at("layer_from"))][std::stoul(row.at("head_from"))].get<double>(),
        1e-4);
}

TEST_F(PlotProgram, SizesFormatsAndPalettesAreTaken) {
  const std::string a = run("a");
  ASSERT_EQ(plot({a, "--figure", "layers", "--quiet"}).status, 0);
  EXPECT_EQ(testing::decode_png(content_of(folder / "out/layers.png")).width, 1016U)
      << "86 mm at 300 dots an inch";
  ASSERT_EQ(plot({a, "--figure", "layers", "--column", "double", "--height", "50", "--quiet"}).status, 0);
  const auto wide = testing::decode_png(content_of(folder / "out/layers.png"));
  EXPECT_EQ(wide.width, 2102U);
  EXPECT_EQ(wide.height, 591U);
  ASSERT_EQ(plot({a, "--figure", "layers", "--width", "100", "--format", "pdf", "--quiet"}).status, 0);
  EXPECT_THAT(content_of(folder / "out/layers.pdf"), ::testing::StartsWith("%PDF"));
  EXPECT_EQ(json::parse(content_of(folder / "out/layers.json"))["picture"]["width_mm"], 100);
  ASSERT_EQ(plot({a, "--figure", "layer-head", "--figure", "tracks", "--palette", "cividis", "--format",
                  "svg", "--quiet"})
                .status,
            0);
  EXPECT_EQ(json::parse(content_of(folder / "out/layer-head.json"))["colour"]["palette"], "cividis");
  EXPECT_THAT(content_of(folder / "out/tracks.svg"), HasSubstr("<svg"));
}

TEST_F(PlotProgram, TokensAreNamedByTheTokenizer) {
  const std::string a = run("a");
  const auto nameless = plot({a, "--figure", "heatmap"});
  EXPECT_EQ(nameless.status, 0);
  EXPECT_THAT(nameless.error, HasSubstr("--tokenizer would give them"));
  const auto labels = [&] {
    return json::parse(content_of(folder / "out/heatmap.json"))["picture"]["panels"][0].contains("labels");
  };
  EXPECT_FALSE(labels());
  ASSERT_EQ(plot({a, "--figure", "heatmap", "--tokenizer", "tiny-llada"}).status, 0);
  EXPECT_TRUE(labels());
}

TEST_F(PlotProgram, FilmsAreMadeOfFrames) {
  const std::string a = run("a");
  const auto made =
      plot({a, "--frames", "--size", "640x360", "--layer", "1", "--head", "0", "--fps", "5", "--quiet"});
  ASSERT_EQ(made.status, 0) << made.error;
  EXPECT_EQ(names_in(folder / "out/columns-frames").size(), 10U);
  const json about = json::parse(content_of(folder / "out/columns.json"));
  EXPECT_EQ(about["film"]["frames_per_second"], 5);
  EXPECT_EQ(about["runs"][0]["layers"], json::array({1}));
  const auto again = plot({a, "--frames", "--size", "640x360", "--quiet"});
  EXPECT_EQ(again.status, 1);
  EXPECT_THAT(again.error, HasSubstr("columns-frames exists already"));
}

TEST_F(PlotProgram, AnEvaluationsGridIsDrawnByOneMetric) {
  const std::string evaluation = folder / "evaluation";
  const auto evaluated = run_program(
      {"eval", "sums-llama", "--tasks", std::string(SINKSCOPE_SOURCE_DIR) + "/models/recipes/sums/task.json",
       "--limit", "2", "--gen-len", "4", "--sink-top-k", "0,1", "--sink-rank", "visible", "--sink-control",
       "none,random", "--run-dir", evaluation, "--quiet"});
  ASSERT_EQ(evaluated.status, 0) << evaluated.error;
  ASSERT_EQ(plot({evaluation, "--metric", "exact_match,whole", "--quiet"}).status, 0);
  const auto rows = read_csv(content_of(folder / "out/interventions.csv"));
  const json table = json::parse(content_of(folder / "evaluation/eval.json"))["table"];
  ASSERT_EQ(rows.size(), 3U);
  std::size_t drawn = 0;
  for (const json& row : table) {
    if (row["filter"] != "whole") continue;
    EXPECT_EQ(rows.at(drawn).at("control"), row["control"]);
    EXPECT_EQ(rows.at(drawn).at("top_k"), row["top_k"].dump());
    EXPECT_EQ(std::stod(rows.at(drawn).at("value")), row["value"].get<double>());
    EXPECT_EQ(rows.at(drawn++).at("filter"), "whole");
  }
  EXPECT_EQ(drawn, 3U);
  const auto other = plot({evaluation, "--metric", "exact_match,last"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.error, HasSubstr("--metric \"exact_match,last\" is in no evaluation; there are "
                                     "exact_match,result; exact_match,flexible-extract; exact_match,whole"));
}

TEST_F(PlotProgram, WrongUseIsNamed) {
  const std::string a = run("a");
  const auto refused = [&](const std::vector<std::string>& arguments, const std::string& message) {
    const auto result = plot(arguments);
    EXPECT_EQ(result.status, 2) << message;
    EXPECT_THAT(result.error, HasSubstr(message));
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  };
  refused({}, "RUN is required");
  refused({a, "--width", "10"}, "--width is 10 mm; 20 to 500 is right");
  refused({a, "--height", "nan"}, "--height");
  refused({a, "--width", "100", "--column", "single"}, "--column and --width both");
  refused({a, "--width", "20", "--height", "20", "--quiet"}, "has no room for its panels");
  refused({a, "--layer", "x"}, "--layer \"x\" is not of the form");
  refused({a, "--z", "3"}, "--z is of the rules zscore and soft");
  refused({a, "--fps", "5"}, "--fps is of films");
  refused({a, "--frames", "--format", "svg"}, "--format is of pictures");
  refused({a, "--frames", "--size", "641x360"}, "--size \"641x360\" is not of the form");
  refused({a, "--frames", "--fps", "0"}, "--fps is 0");
  refused({a, "--figure", "layers", "--step", "3"}, "--step is of --figure maps");
  refused({a, "--figure", "layers", "--aggregate", "max"}, "--aggregate is of --figure heatmap and columns");
  refused({a, "--figure", "layers", "--metric", "acc,none"}, "--metric is of --figure interventions");
  refused({a, "--metric", "acc,none"}, "--metric is of evaluations");
  refused({a, "--frames", "--metric", "acc,none"}, "--metric is of pictures");
  refused({a, "--figure", "layers", "--palette", "cividis"},
          "--palette is of --figure heatmap and maps and layer-head");
  EXPECT_EQ(run_program({"plot", a}).status, 2) << "no --out";
  EXPECT_THAT(run_program({"plot", a, "-o", a + "/run.json"}).error, HasSubstr("is a file"));
}

TEST_F(PlotProgram, ABrokenRunLeavesNothingBehind) {
  const std::string a = run("a"), b = run("b");
  testing::write_file(folder / "b/sample_00001.npz", "no archive");
  const auto result = plot({a, b, "--quiet"});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("b/sample_00001.npz"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(PlotProgram, NamesAreListed) {
  const auto list = run_program({"plot", "--list"});
  EXPECT_EQ(list.status, 0);
  for (const char* name :
       {"heatmap", "tracks", "maps", "layer-head", "histogram", "epsilon", "layers", "absorption",
        "lifetimes", "jumps", "tokens", "positions", "losses", "emergence", "massive", "interventions"})
    EXPECT_THAT("\n" + list.out, HasSubstr(std::string("\n") + name + " ")) << name;
}

TEST_F(PlotProgram, WithoutGnuplotThePackageIsNamed) {
  const std::string a = run("a");
  testing::ProgramOptions options;
  options.in_child = [] { ::setenv("PATH", "/nowhere", 1); };
  const auto result = run_program({"plot", a, "-o", folder / "out"}, options);
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("gnuplot-nox"));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(PlotProgram, DrawsTrainingRuns) {
  std::filesystem::create_directory(folder / "training");
  write_file(
      folder / "training/metrics.jsonl",
      "{\"step\":10,\"loss\":3.5,\"token_loss\":3.4}\n{\"step\":20,\"loss\":2.5,\"token_loss\":2.4}\n");
  const auto result = plot({folder / "training", "--figure", "losses", "--quiet"});
  EXPECT_EQ(result.status, 0) << result.error;
  EXPECT_TRUE(std::filesystem::exists(folder / "out/losses.png"));
}

}  // namespace
}  // namespace sinkscope
