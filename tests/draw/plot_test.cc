// Figures of runs whose sinks are known: tables, descriptions and pixels.
#include "draw/plot.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/token_writer.h>

#include <cmath>

#include "support/csv.h"
#include "support/picture.h"
#include "support/planted_run.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using testing::decode_png;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::names_in;
using testing::Plant;
using testing::PlantedRun;
using testing::PlantedSample;
using testing::read_csv;
using testing::TemporaryFolder;
using testing::write_file;

constexpr testing::Pixel brightest{0xfd, 0xe7, 0x25};

// 40 positions, 8 of them prompt, 10 steps. In layer 0 head 0 key 5 is a sink throughout; in layer 1 head 1
// the sink moves from 10 to 30 at step 6; the other maps are uniform. Every planted column is 0.25 * 40 = 10.
PlantedSample planted() {
  PlantedSample sample;
  sample.plant = [](int step, int layer, int head, int) {
    if (layer == 0 && head == 0) return Plant{{5}};
    if (layer == 1 && head == 1) return Plant{{step < 6 ? 10 : 30}};
    return Plant{};
  };
  return sample;
}

class Plot : public ::testing::Test {
 protected:
  std::string run(const std::string& name, const PlantedSample& sample = planted(), int samples = 1) const {
    PlantedRun planted(folder / name, 2, 2, name);
    for (int i = 0; i < samples; ++i) planted.add(sample);
    planted.end();
    return folder / name;
  }
  PlotOptions options_of(const std::vector<std::string>& runs,
                         const std::vector<std::string>& figures) const {
    PlotOptions options;
    options.runs.assign(runs.begin(), runs.end());
    options.figures = figures;
    options.out = folder / "out";
    options.style.dots = 100;
    return options;
  }
  std::vector<std::string> plot(const PlotOptions& options) {
    PlotCallbacks callbacks;
    callbacks.token_text = [](const RunInfo&, std::int32_t id) {
      return std::optional("t" + std::to_string(id));
    };
    callbacks.note = [&](const std::string& line) { notes.push_back(line); };
    std::vector<std::string> names;
    for (const auto& path : plot_runs(options, callbacks)) names.push_back(path.filename().string());
    return names;
  }
  std::string error_of(const PlotOptions& options) {
    try {
      plot(options);
    } catch (const std::exception& error) {
      EXPECT_FALSE(std::filesystem::exists(folder / "out")) << error.what();
      return error.what();
    }
    return "(none)";
  }
  std::vector<std::map<std::string, std::string>> table(const std::string& name) const {
    return read_csv(content_of(folder / ("out/" + name + ".csv")));
  }
  json description(const std::string& name) const {
    return json::parse(content_of(folder / ("out/" + name + ".json")));
  }
  testing::DecodedPicture picture(const std::string& name) const {
    return decode_png(content_of(folder / ("out/" + name + ".png")));
  }
  TemporaryFolder folder;
  std::vector<std::string> notes;
};

TEST_F(Plot, TheHeatMapHasThePlantedColumns) {
  PlotOptions options = options_of({run("a")}, {"heatmap"});
  options.layers = parse_ranges("1", "--layer");
  options.heads = parse_ranges("1", "--head");
  EXPECT_THAT(plot(options), ElementsAre("heatmap.png", "heatmap.csv", "heatmap.json"));
  const auto rows = table("heatmap");
  ASSERT_EQ(rows.size(), 400U);
  for (const auto& row : rows) {
    const int step = std::stoi(row.at("step_from")), position = std::stoi(row.at("position_from"));
    EXPECT_EQ(row.at("step_to"), row.at("step_from"));
    EXPECT_NEAR(std::stod(row.at("value")), position == (step < 6 ? 10 : 30) ? 10 : 30.0 / 39, 1e-4);
  }
  const json about = description("heatmap");
  EXPECT_EQ(about["runs"][0]["layers"], json::array({1}));
  EXPECT_EQ(about["runs"][0]["sample"], 0);
  EXPECT_EQ(about["runs"][0]["prompt_length"], 8);
  EXPECT_EQ(about["colour"]["from"], 0);
  EXPECT_NEAR(about["colour"]["to"].get<double>(), 10, 1e-4);
  EXPECT_THAT(about["note"], HasSubstr("layer 1, head 1, sample 0"));
  const json panel = about["picture"]["panels"][0];
  const auto drawn = picture("heatmap");
  for (const int step : {0, 5, 6, 9})
    for (const int position : {10, 30}) {
      const bool sink = position == (step < 6 ? 10 : 30);
      const double off = testing::distance(testing::pixel_of(drawn, panel, position, step), brightest);
      EXPECT_EQ(off < 12, sink) << step << " " << position << " " << off;
    }
  // One mask a step is written, from left to right.
  ASSERT_EQ(panel["dashes"].size(), 10U);
  EXPECT_EQ(panel["dashes"][0], (json{8.0, 0.5}));
  EXPECT_EQ(panel["dashes"][9], (json{17.0, 9.5}));
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panel, 12, 4.5), {255, 255, 255}), 120);
  // Labels: the planted positions first.
  std::map<double, std::string> labels;
  for (const auto& label : panel["labels"]) labels[label["at"]] = label["text"];
  EXPECT_EQ(labels.at(10), "t50");
  EXPECT_EQ(labels.at(30), "t99");
}

TEST_F(Plot, MapsBecomeOneByMeanOrMaximum) {
  PlotOptions options = options_of({run("a")}, {"heatmap"});
  plot(options);
  EXPECT_NEAR(std::stod(table("heatmap")[5]["value"]), (10 + 1 + 1 + 30.0 / 39) / 4, 1e-4);
  EXPECT_THAT(description("heatmap")["note"], HasSubstr("mean over 2 layers × 2 heads"));
  options.aggregate = Aggregate::maximum;
  plot(options);
  EXPECT_NEAR(std::stod(table("heatmap")[5]["value"]), 10, 1e-4);
  EXPECT_THAT(description("heatmap")["note"], HasSubstr("max over 2 layers × 2 heads"));
  options.detection.scale = SinkScale::percent;
  plot(options);
  EXPECT_NEAR(std::stod(table("heatmap")[5]["value"]), 25, 1e-3);
  EXPECT_EQ(description("heatmap")["colour"]["title"], "100 C / S");
}

TEST_F(Plot, ASinkOfOneStepAndPositionSurvivesDownsampling) {
  PlantedSample sample;
  sample.steps = 3;
  sample.positions = 3000;
  sample.plant = [](int step, int layer, int head, int) {
    return step == 1 && layer + head == 0 ? Plant{{1234}, 0.01} : Plant{};
  };
  PlotOptions options = options_of({run("wide", sample)}, {"heatmap"});
  options.layers = options.heads = parse_ranges("0", "");
  plot(options);
  const json panel = description("heatmap")["picture"]["panels"][0];
  const int factor = panel["cell"]["columns"];
  EXPECT_GT(factor, 5);
  EXPECT_EQ(panel["cell"]["by"], "maximum");
  int bright = 0;
  for (const auto& row : table("heatmap"))
    if (std::stod(row.at("value")) > 20) {
      ++bright;
      EXPECT_LE(std::stoi(row.at("position_from")), 1234);
      EXPECT_GE(std::stoi(row.at("position_to")), 1234);
    }
  EXPECT_EQ(bright, 1);
  EXPECT_LT(testing::distance(
                testing::pixel_of(picture("heatmap"), panel, 1234 / factor * factor + (factor - 1) / 2.0, 1),
                brightest),
            12);
}

TEST_F(Plot, TracksFollowTheLargestSink) {
  PlotOptions options = options_of({run("a")}, {"tracks"});
  options.layers = parse_ranges("0-1", "--layer");
  plot(options);
  std::map<std::string, std::string> positions;
  for (const auto& row : table("tracks"))
    positions[row.at("layer") + "/" + row.at("head")] += row.at("position") + " ";
  EXPECT_EQ(positions.at("0/0"), "5 5 5 5 5 5 5 5 5 5 ");
  EXPECT_EQ(positions.at("1/1"), "10 10 10 10 10 10 30 30 30 30 ");
  EXPECT_EQ(positions.at("0/1"), "          ") << "uniform attention has no sink";
  options.layers = {};
  plot(options);
  positions.clear();
  for (const auto& row : table("tracks")) positions[row.at("layer") + "/" + row.at("head")] += "x";
  EXPECT_EQ(positions.size(), 2U) << "of each layer the head with the largest sink";
  EXPECT_TRUE(positions.contains("0/0") && positions.contains("1/1"));
}

TEST_F(Plot, PooledFiguresHaveTheCountsOfThePlantedSinks) {
  plot(options_of({run("a", planted(), 3)}, {"layer-head", "histogram", "epsilon", "layers", "absorption",
                                             "lifetimes", "jumps", "tokens", "positions"}));
  std::string values;
  for (const auto& row : table("layer-head")) values += row.at("value").substr(0, 2) + ";";
  EXPECT_EQ(values, "10;;;10;") << "null where a head never has a sink";
  double cells = 0, above = 0;
  for (const auto& row : table("histogram")) {
    cells += std::stod(row.at("cells"));
    if (std::stod(row.at("from")) >= 9) above += std::stod(row.at("cells"));
  }
  EXPECT_EQ(cells, 3 * 10 * 4 * 40);
  EXPECT_EQ(above, 3 * 10 * 2);
  for (const auto& row : table("epsilon")) {
    const double epsilon = std::stod(row.at("epsilon"));
    // The sinks exceed the others by 10 - 30/39.
    EXPECT_NEAR(std::stod(row.at("share_of_non_sinks")), epsilon < 9.2 ? 1 - 2.0 / 160 : 1, 1e-9) << epsilon;
  }
  EXPECT_EQ(table("layers")[0]["sinks"], "0.5");
  EXPECT_NEAR(std::stod(table("absorption")[1]["share"]), 0.125, 1e-5);
  const auto lives = table("lifetimes");
  ASSERT_EQ(lives.size(), 3U);
  EXPECT_EQ(lives[0].at("steps") + " " + lives[0].at("lives") + " " + lives[0].at("touching_an_end"),
            "4 3 3");
  EXPECT_EQ(lives[1].at("steps") + " " + lives[1].at("lives"), "6 3");
  EXPECT_EQ(lives[2].at("steps") + " " + lives[2].at("lives"), "10 3");
  const auto jumps = table("jumps");
  ASSERT_EQ(jumps.size(), 1U);
  EXPECT_EQ(jumps[0].at("distance") + " " + jumps[0].at("jumps"), "20 3");
  // Position 5 is token 6 of the prompt; 10 is a mask (99) up to step 2 and then token 50; 30 is a mask.
  std::map<std::string, double> frequency;
  for (const auto& row : table("tokens")) {
    frequency[row.at("text")] = std::stod(row.at("frequency"));
    EXPECT_NEAR(std::stod(row.at("lift")) * std::stod(row.at("share")), std::stod(row.at("frequency")), 1e-9);
  }
  EXPECT_NEAR(frequency.at("t6"), 0.5, 1e-9);
  EXPECT_NEAR(frequency.at("t50"), 3.0 / 20, 1e-9);
  EXPECT_NEAR(frequency.at("t99"), 7.0 / 20, 1e-9);
  EXPECT_EQ(table("positions").size(), 10U);
  EXPECT_NEAR(std::stod(table("positions")[1]["frequency"]), 0.5, 1e-9);
  for (const char* name : {"layer-head", "histogram", "epsilon", "layers", "absorption", "lifetimes", "jumps",
                           "tokens", "positions"}) {
    EXPECT_GT(picture(name).ink(), 0.01) << name;
    EXPECT_FALSE(description(name)["aggregation"]["value"].get<std::string>().empty()) << name;
    EXPECT_EQ(description(name)["runs"][0]["samples"], json::array({0, 1, 2})) << name;
  }
}

TEST_F(Plot, ASampleIsChosenByItsIndex) {
  PlantedRun two(folder / "two", 2, 2);
  two.add(planted());
  PlantedSample other = planted();
  other.plant = [](int, int, int, int) { return Plant{{20}}; };
  two.add(other);
  two.end();
  PlotOptions options = options_of({folder / "two"}, {"tracks", "jumps"});
  options.sample = 1;
  plot(options);
  EXPECT_EQ(table("tracks")[0]["position"], "20");
  EXPECT_TRUE(table("jumps").empty()) << "only that sample";
  std::filesystem::remove_all(folder / "out");
  options.sample = 2;
  EXPECT_THAT(error_of(options), HasSubstr("--sample 2"));
}

TEST_F(Plot, TwoRunsStandSideBySideOnOneScale) {
  PlantedSample weak = planted();
  weak.plant = [](int, int, int, int) { return Plant{{20}, 0.05}; };  // C = 2
  weak.steps = 5;
  PlotOptions options = options_of({run("strong"), run("weak", weak)}, {"heatmap", "epsilon", "layers"});
  options.aggregate = Aggregate::maximum;
  options.compare = true;
  EXPECT_EQ(plot(options).size(), 9U);
  const json about = description("heatmap");
  const json panels = about["picture"]["panels"];
  ASSERT_EQ(panels.size(), 2U);
  EXPECT_EQ(panels[0]["title"], "strong");
  EXPECT_EQ(panels[1]["title"], "weak");
  EXPECT_EQ(panels[0]["x"], panels[1]["x"]);
  EXPECT_EQ(panels[0]["y"], panels[1]["y"]);
  EXPECT_NEAR(about["colour"]["to"].get<double>(), 10, 1e-4);
  const auto drawn = picture("heatmap");
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panels[0], 5, 3), brightest), 12);
  EXPECT_GT(testing::distance(testing::pixel_of(drawn, panels[1], 20, 3), brightest), 100) << "2 of 10";
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panels[1], 20, 8), {0xe6, 0xe6, 0xe6}), 5)
      << "no such step";
  EXPECT_EQ(description("epsilon")["picture"]["panels"].size(), 2U);
}

TEST_F(Plot, SeveralRunsShareFiguresOfCurves) {
  const std::vector<std::string> names = plot(options_of({run("a"), run("b")}, {"heatmap", "layers"}));
  EXPECT_THAT(
      names, ElementsAre("a-heatmap.png", "a-heatmap.csv", "a-heatmap.json", "b-heatmap.png", "b-heatmap.csv",
                         "b-heatmap.json", "layers.png", "layers.csv", "layers.json"));
  const auto rows = table("layers");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("run") + rows[3].at("run"), "ab");
  EXPECT_EQ(description("layers")["picture"]["panels"].size(), 1U);
}

TEST_F(Plot, WithoutNamesAllFiguresOfTheArraysAreDrawn) {
  EXPECT_EQ(plot(options_of({run("a")}, {})).size(), 3 * 11U);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("no figure maps: ")));
  EXPECT_THAT(notes[0], HasSubstr("has no array map_L{layer}_H{head}; record the run with --maps"));
}

// A run with whole maps: the sink of layer 1 head 0 jumps from 3 to 9 at step 2.
std::string run_with_maps(const std::filesystem::path& folder) {
  const auto run = RunDirectory::create(folder, [] {
    RunInfo info;
    info.model = {"maps", "llada", 2, 1, 1, 99, "", ""};
    return info;
  }());
  NpzWriter writer(folder / "sample_00000.npz");
  writer.declare("states", ArrayType::int32, {12});
  writer.declare("column_sum", ArrayType::float32, {3, 2, 1, 12});
  writer.declare("map_L1_H0", ArrayType::float32, {12, 12});
  const std::int32_t prompt = 2;
  writer.add("prompt_length", {}, std::span(&prompt, 1));
  for (int t = 0; t < 4; ++t) {
    const int sink = t < 2 ? 3 : 9;
    std::vector<std::int32_t> ids(12, 99);
    std::vector<float> map(144, 0.5F / 11), sums(72, 0);
    for (int i = 0; i < 12; ++i) map[i * 12 + sink] = 0.5F;
    for (int j = 0; j < 12; ++j) sums[48 + 12 + j] = sums[48 + j] = 1;
    writer.append("states", ids);
    writer.append("column_sum", sums);
    writer.append("map_L1_H0", map);
  }
  writer.append("states", std::vector<std::int32_t>(12, 7));
  writer.finish();
  write_file(folder / "samples.jsonl", "{\"index\":0}\n");
  return folder;
}

TEST_F(Plot, MapsAreThoseBeforeAndAfterTheJump) {
  PlotOptions options = options_of({run_with_maps(folder / "m")}, {"maps"});
  plot(options);
  const json about = description("maps");
  EXPECT_EQ(about["runs"][0]["steps"], json::array({1, 2}));
  EXPECT_EQ(about["runs"][0]["layers"], json::array({1}));
  const json panels = about["picture"]["panels"];
  const auto drawn = picture("maps");
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panels[0], 3, 6), brightest), 12);
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panels[1], 9, 6), brightest), 12);
  EXPECT_GT(testing::distance(testing::pixel_of(drawn, panels[1], 3, 6), brightest), 100);
  EXPECT_EQ(table("maps").size(), 2 * 144U);
  options.step = 1;
  plot(options);
  EXPECT_EQ(description("maps")["runs"][0]["steps"], json::array({0, 1}));
  std::filesystem::remove_all(folder / "out");
  options.step = 4;
  EXPECT_THAT(error_of(options), HasSubstr("--step 4: sample 0 of"));
  options.step = {};
  options.layers = parse_ranges("0", "--layer");
  EXPECT_THAT(error_of(options), HasSubstr("of the layers and heads asked for"));
}

// Three tokens behind a prompt of 4; layer 0 head 1 looks at key 2 with 0.7.
std::string autoregressive_run(const std::filesystem::path& folder) {
  RunInfo info;
  info.model = {"ar", "llama", 1, 2, 2, std::nullopt, "", ""};
  const auto run = RunDirectory::create(folder, info);
  TokenLayout layout;
  layout.longest = 10, layout.layers = 1, layout.heads = 2, layout.vocabulary = 9, layout.prompt_length = 4;
  layout.array_type = ArrayType::float32;
  TokenWriter writer(folder / "sample_00000.npz", layout);
  std::vector<std::int32_t> sequence{1, 2, 3, 4};
  for (int t = 0; t < 3; ++t) {
    const std::size_t n = sequence.size();
    std::vector<float> rows(2 * n, 1.0F / static_cast<float>(n));
    for (std::size_t j = 0; j < n; ++j) rows[n + j] = j == 2 ? 0.7F : 0.3F / static_cast<float>(n - 1);
    TokenStep step;
    step.sequence = sequence;
    step.last_row = rows;
    writer.append_token(step);
    sequence.push_back(5 + t);
  }
  writer.finish(sequence);
  write_file(folder / "samples.jsonl", "{\"index\":0}\n");
  return folder;
}

TEST_F(Plot, AutoregressiveRunsAreDrawnByTheirLastRows) {
  PlotOptions options = options_of({autoregressive_run(folder / "ar")}, {"heatmap", "tracks", "layers"});
  options.detection.epsilon = 1;
  options.heads = parse_ranges("1", "--head");
  plot(options);
  const auto rows = table("heatmap");
  ASSERT_EQ(rows.size(), 3 * 6U);
  EXPECT_NEAR(std::stod(rows[2].at("value")), 0.7 * 4, 1e-5);
  EXPECT_NEAR(std::stod(rows[14].at("value")), 0.7 * 6, 1e-5);
  EXPECT_EQ(rows[4].at("value"), "") << "key 4 is not there yet";
  EXPECT_EQ(rows[4].at("token_from"), "0");
  EXPECT_EQ(table("tracks")[2]["position"], "2");
  EXPECT_EQ(table("layers")[0]["sinks"], "1.0");
  EXPECT_EQ(description("heatmap")["runs"][0]["kind"], "autoregressive");
  EXPECT_THAT(description("heatmap")["aggregation"]["quantity"], HasSubstr("last query"));
  std::filesystem::remove_all(folder / "out");
  options.figures = {"maps"};
  EXPECT_THAT(error_of(options),
              HasSubstr("autoregressive model, which records last rows and no whole maps"));
}

TEST_F(Plot, BrokenRunsAreNamedAndLeaveNothing) {
  const std::string a = run("a");
  EXPECT_THAT(error_of(options_of({folder / "nowhere"}, {})), HasSubstr("nowhere is not there"));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_THAT(error_of(options_of({folder / "empty"}, {})), HasSubstr("empty is no run directory"));
  EXPECT_THAT(error_of(options_of({a}, {"heat"})), HasSubstr("--figure \"heat\" is none of heatmap, tracks"));
  EXPECT_THAT(error_of(options_of({a}, {"losses"})), HasSubstr("losses is a figure of training runs"));
  PlotOptions options = options_of({a}, {"heatmap"});
  options.layers = parse_ranges("1-2", "--layer");
  EXPECT_THAT(error_of(options), HasSubstr("--layer names layer 2"));
  options.layers = {};
  options.heads = parse_ranges("7", "--head");
  EXPECT_THAT(error_of(options), HasSubstr("heads 0 to 1"));
  options.heads = {};
  options.sample = 3;
  EXPECT_THAT(error_of(options), HasSubstr("--sample 3"));
  options.sample = {};
  options.compare = true;
  EXPECT_THAT(error_of(options), HasSubstr("--compare takes two runs, not 1"));
  PlotOptions topk = options_of({a}, {"epsilon"});
  topk.detection = default_detection(SinkRule::topk);
  EXPECT_THAT(error_of(topk), HasSubstr("rule topk has no threshold"));
  write_file(folder / "a/sample_00000.npz", "no archive");
  EXPECT_THAT(error_of(options_of({a}, {})), HasSubstr("a/sample_00000.npz"));
  std::filesystem::remove(folder / "a/sample_00000.npz");
  EXPECT_THAT(error_of(options_of({a}, {"maps"})), HasSubstr("a/sample_00000.npz"));
}

TEST_F(Plot, WithoutColumnSumsTheArrayIsNamed) {
  const auto run = RunDirectory::create(folder / "none", [] {
    RunInfo info;
    info.model = {"none", "llada", 2, 2, 2, 99, "", ""};
    return info;
  }());
  SampleLayout layout;
  layout.positions = 4, layout.layers = layout.heads = layout.kv_heads = 2;
  layout.columns = false;
  SampleWriter writer(folder / "none/sample_00000.npz", layout);
  const std::vector<std::int32_t> ids(4, 1);
  const std::vector<float> confidence(4, 0);
  SampleStep step;
  step.states = step.proposed = ids;
  step.confidence = confidence;
  writer.append_step(step);
  writer.finish(ids);
  write_file(folder / "none/samples.jsonl", "{\"index\":0}\n");
  EXPECT_THAT(error_of(options_of({folder / "none"}, {"heatmap"})), HasSubstr("has no array column_sum"));
}

TEST_F(Plot, TrainingRunsGiveTheirCurves) {
  std::filesystem::create_directory(folder / "training");
  write_file(
      folder / "training/metrics.jsonl",
      "{\"step\":0,\"probe\":{\"sink_rate\":0,\"alpha_first\":0.1,\"sink_rates\":[0,0.5],\"massive_ratio\":["
      "1.5,9]}}\n"
      "{\"step\":10,\"loss\":3.5,\"token_loss\":3.25}\n{\"step\":20,\"loss\":2.5,\"token_loss\":2.25}\n");
  EXPECT_EQ(plot(options_of({folder / "training"}, {})).size(), 9U);
  const auto rows = table("losses");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[1].at("curve") + rows[1].at("step") + rows[1].at("value"), "loss20.02.5");
  EXPECT_EQ(table("emergence")[1]["value"], "0.5");
  EXPECT_EQ(table("massive")[1]["curve"], "massive_ratio/1");
  EXPECT_GT(picture("losses").ink(), 0.005);
}

TEST_F(Plot, EvaluationsBecomeBarsWithErrors) {
  for (const auto& [name, value] : {std::pair("none", "0.8"), {"top1", "0.2"}}) {
    std::filesystem::create_directory(folder / name);
    write_file(folder / name / "results.json",
               std::string("{\"results\":{\"gsm8k\":{\"alias\":\"gsm8k\",\"exact_match,strict-match\":0.1,"
                           "\"exact_match_stderr,strict-match\":0.01,\"exact_match,flexible-extract\":") +
                   value +
                   ",\"exact_match_stderr,flexible-extract\":0.05},\"other\":{\"acc,none\":0.5,\"acc_stderr,"
                   "none\":\"N/A\"}}}");
  }
  plot(options_of({folder / "none", folder / "top1/results.json"}, {}));
  const auto rows = table("interventions");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].at("metric"), "exact_match,flexible-extract");
  EXPECT_EQ(rows[0].at("run") + rows[0].at("value") + rows[0].at("standard_error"), "none0.80.05");
  EXPECT_EQ(rows[2].at("run") + rows[2].at("value"), "top10.2");
  EXPECT_EQ(rows[3].at("standard_error"), "");
  const json panel = description("interventions")["picture"]["panels"][0];
  const auto drawn = picture("interventions");
  const testing::Pixel blue{0x00, 0x72, 0xb2}, orange{0xd5, 0x5e, 0x00}, white{255, 255, 255};
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panel, -0.3, 0.6), blue), 5);
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panel, 0.1, 0.1), orange), 5);
  EXPECT_LT(testing::distance(testing::pixel_of(drawn, panel, 0.1, 0.6), white), 5);
  // The folder of both, as `eval` leaves it, in the order of its grid.
  write_file(folder / "eval.json", R"({"cells":[{"name":"top1"},{"name":"none"},{"name":"not-yet"}]})");
  plot(options_of({folder.path()}, {}));
  ASSERT_EQ(table("interventions").size(), 4U);
  EXPECT_EQ(table("interventions")[0]["run"], "top1");
  std::filesystem::remove_all(folder / "out");
  write_file(folder / "eval.json", R"({"cells":[{"name":"not-yet"}]})");
  EXPECT_THAT(error_of(options_of({folder.path()}, {})), HasSubstr("no cell with a results.json yet"));
  write_file(folder / "none/results.json", "{\"results\":{\"gsm8k\":{\"alias\":\"x\"}}}");
  EXPECT_THAT(error_of(options_of({folder / "none"}, {})), HasSubstr("has no task with a number"));
  const std::pair<const char*, const char*> wrong[] = {
      {R"({"acc,none":"0.9"})", "results.t.acc,none is a string; a number of at most 1e+30 is right"},
      {R"({"acc,none":1e308})", "results.t.acc,none is 1e+308"},
      {R"({"acc,none":1,"acc_stderr,none":-1})", "results.t.acc_stderr,none is -1"},
      {R"({"acc,none":1,"acc_stderr,none":true})", "results.t.acc_stderr,none is a boolean"},
      {"[]", "results.t is an array; an object is right"}};
  for (const auto& [task, says] : wrong) {
    write_file(folder / "none/results.json", std::string("{\"results\":{\"t\":") + task + "}}");
    EXPECT_THAT(error_of(options_of({folder / "none"}, {})), HasSubstr(says));
  }
  write_file(folder / "none/results.json", "[]");
  EXPECT_THAT(error_of(options_of({folder / "none"}, {})), HasSubstr("has no object `results`"));
}

json grid_row(const std::string& task, const std::string& filter, int top_k, const std::string& control,
              double value, const json& rank = "own") {
  return {{"task", task},       {"metric", "exact_match"}, {"filter", filter},
          {"cell", "any"},      {"top_k", top_k},          {"rank", top_k == 0 ? json() : rank},
          {"control", control}, {"samples", 100},          {"value", value},
          {"stderr", 0.02}};
}

// Nothing masked 0.8; the sinks 0.1, random keys 0.6, bottom 0.7, of the second rank 0 and 0.5.
json grid_table() {
  json table = json::array();
  for (const char* filter : {"strict", "flexible"}) {
    const double more = filter[0] == 's' ? 0 : 0.05;
    table.push_back(grid_row("sums", filter, 0, "none", 0.8 + more));
    for (const auto& [control, value] : {std::pair("none", 0.1), {"random", 0.6}, {"bottom", 0.7}})
      table.push_back(grid_row("sums", filter, 1, control, value + more));
    for (const auto& [control, value] : {std::pair("none", 0.0), {"random", 0.5}})
      table.push_back(grid_row("sums", filter, 5, control, value + more, "last"));
  }
  return table;
}

class PlotGrid : public Plot {
 protected:
  std::string evaluation(const std::string& name, const json& table, const std::string& model = "m") const {
    std::filesystem::create_directories(folder / name);
    write_file(folder / name / "eval.json",
               json{{"cells", json::array()}, {"model", {{"name", model}}}, {"table", table}}.dump());
    return folder / name;
  }
  testing::Pixel pixel(std::size_t panel, double x, double y) const {
    return testing::pixel_of(picture("interventions"),
                             description("interventions")["picture"]["panels"][panel], x, y);
  }
};

TEST_F(PlotGrid, SinksAndControlsStandBesideEachOther) {
  EXPECT_THAT(plot(options_of({evaluation("e", grid_table())}, {})),
              ElementsAre("interventions.png", "interventions.csv", "interventions.json"));
  const testing::Pixel blue{0x00, 0x72, 0xb2}, grey{0x99, 0x99, 0x99}, orange{0xe6, 0x9f, 0x00},
      white{255, 255, 255};
  // One wide for a number of keys, of which three bars take 0.84.
  const auto near = [](const testing::Pixel& is, const testing::Pixel& right) {
    return testing::distance(is, right) < 5;
  };
  EXPECT_TRUE(near(pixel(0, 0.16, 0.04), blue));
  EXPECT_TRUE(near(pixel(0, 0.16, 0.3), white));
  EXPECT_TRUE(near(pixel(0, 0.44, 0.5), grey));
  EXPECT_TRUE(near(pixel(0, 0.44, 0.7), white));
  EXPECT_TRUE(near(pixel(0, 0.72, 0.65), orange));
  EXPECT_TRUE(near(pixel(0, 1.55 + 0.44, 0.4), grey)) << "the second rank";
  EXPECT_TRUE(near(pixel(0, 1.55 + 0.72, 0.1), white)) << "no such cell";
  EXPECT_TRUE(near(pixel(0, -0.2, 0.815), {0xd4, 0xd4, 0xd4})) << "one standard error of nothing masked";
  EXPECT_TRUE(near(pixel(0, -0.2, 0.86), white));
  const json about = description("interventions");
  const json panel = about["picture"]["panels"][0];
  EXPECT_EQ(panel["title"], "sums");
  EXPECT_EQ(panel["y"]["title"], "exact_match, strict");
  EXPECT_EQ(panel["y"]["from"], 0);
  EXPECT_EQ(panel["y"]["to"], 1.04);
  EXPECT_EQ(about["runs"][0]["label"], "m");
  EXPECT_EQ(about["runs"][0]["tasks"][0],
            json({{"task", "sums"}, {"metric", "exact_match"}, {"filter", "strict"}, {"samples", 100}}));
  EXPECT_THAT(about["note"], HasSubstr("metric and filter: the first of each task"));
  const auto rows = table("interventions");
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows[0].at("rank") + rows[0].at("top_k") + rows[0].at("value"), "00.8");
  EXPECT_EQ(rows[2].at("rank") + rows[2].at("control") + rows[2].at("value") + rows[2].at("stderr"),
            "ownrandom0.60.02");
}

TEST_F(PlotGrid, TheMetricIsChosenOrRefused) {
  json more = grid_table();
  more.push_back(grid_row("other", "strict", 1, "none", 0.3));
  more.push_back(grid_row("choice", "strict", 0, "none", 0.3));
  PlotOptions options = options_of({evaluation("e", more)}, {"interventions"});
  options.metric = "exact_match,flexible";
  plot(options);
  EXPECT_THAT(notes, ElementsAre("no panel of m, other: it has no exact_match,flexible",
                                 "no panel of m, choice: it has no exact_match,flexible"));
  ASSERT_EQ(table("interventions").size(), 6U);
  EXPECT_NEAR(std::stod(table("interventions")[0]["value"]), 0.85, 1e-9);
  EXPECT_THAT(description("interventions")["note"], HasSubstr("--metric exact_match,flexible"));
  notes.clear();
  options.metric = {};
  plot(options);
  EXPECT_THAT(notes, ElementsAre("no panel of m, choice: none of its cells masks keys"));
  EXPECT_EQ(description("interventions")["picture"]["panels"].size(), 2U);
  std::filesystem::remove_all(folder / "out");
  options.metric = "acc,none";
  EXPECT_THAT(error_of(options), HasSubstr("--metric \"acc,none\" is in no evaluation; there are "
                                           "exact_match,strict; exact_match,flexible"));
}

TEST_F(PlotGrid, EvaluationsStandBesideEachOtherOnOneAxis) {
  json high = grid_table();
  high[1]["value"] = 3;
  high.push_back(grid_row("other", "strict", 1, "none", 0.3));
  const std::string a = evaluation("a", grid_table(), "org/one"), b = evaluation("b", high, "two");
  plot(options_of({a, b}, {}));
  const json panels = description("interventions")["picture"]["panels"];
  ASSERT_EQ(panels.size(), 3U);
  EXPECT_EQ(panels[0]["title"], "one: sums");
  EXPECT_EQ(panels[1]["title"], "two: sums");
  EXPECT_EQ(panels[2]["title"], "two: other");
  for (const json& panel : panels) EXPECT_NEAR(panel["y"]["to"].get<double>(), 3.24, 1e-9);
  EXPECT_EQ(panels[0]["place"]["top"], panels[1]["place"]["top"]);
  EXPECT_EQ(table("interventions")[6]["run"], "two");
  EXPECT_EQ(table("interventions")[0]["model"], "org/one");
  // Of one model they have their folders' names.
  plot(options_of({a, evaluation("c", grid_table(), "org/one")}, {}));
  EXPECT_EQ(description("interventions")["picture"]["panels"][1]["title"], "c: sums");
}

TEST_F(PlotGrid, NamesBecomeFilesThatCanBe) {
  write_file(folder / "metrics.jsonl", "{\"step\":1,\"loss\":2}\n");
  const std::string training = folder.path().string();
  for (const auto& [model, stem] : {std::pair(std::string("a\0b", 3), std::string("a_b")),
                                    {"..", "_.."},
                                    {"x\ny", "x_y"},
                                    {std::string(9999, 'm'), std::string(100, 'm')}}) {
    std::filesystem::remove_all(folder / "out");
    plot(options_of({training, evaluation("e", grid_table(), model)}, {}));
    EXPECT_TRUE(std::filesystem::exists(folder / "out" / (stem + "-interventions.csv"))) << stem;
  }
}

TEST_F(PlotGrid, APictureThatNoPngCanBeIsRefused) {
  json table = json::array();
  for (int i = 0; i < 400; ++i)
    for (int top_k : {0, 1}) table.push_back(grid_row("t" + std::to_string(i), "strict", top_k, "none", 0.5));
  EXPECT_THAT(error_of(options_of({evaluation("e", table)}, {})),
              HasSubstr("figure interventions has 400 panels and would be "));
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
}

TEST_F(PlotGrid, BrokenTablesAreNamed) {
  const auto refused = [&](const char* member, const json& value, const char* message) {
    json table = grid_table();
    table[2][member] = value;
    EXPECT_THAT(error_of(options_of({evaluation("e", table)}, {})), HasSubstr(message)) << member;
  };
  refused("value", "x", "eval.json: table[2].value is a string; null or a number of at most 1e+30 is right");
  refused("value", 1e200, "table[2].value is 1e+200");
  refused("stderr", -1, "table[2].stderr is -1; it must be at least 0");
  refused("top_k", -1, "table[2].top_k is -1; a whole number from 0 on is right");
  refused("top_k", 1.5, "table[2].top_k is 1.5");
  refused("rank", nullptr, "table[2].rank is null; a string is right");
  refused("control", "none", "table[2] is a second row of the same cell");
  json table = grid_table();
  table[1].erase("filter");
  EXPECT_THAT(error_of(options_of({evaluation("e", table)}, {})), HasSubstr("table[1] has no filter"));
  table = "rows";
  EXPECT_THAT(error_of(options_of({evaluation("e", table)}, {})), HasSubstr("table is a string"));
  std::filesystem::create_directory(folder / "plain");
  write_file(folder / "plain/results.json", R"({"results":{"sums":{"acc,none":0.5,"acc,norm":0.25}}})");
  const std::string plain = folder / "plain";
  EXPECT_THAT(error_of(options_of({evaluation("e", grid_table()), plain}, {})),
              HasSubstr("takes evaluations of one kind"));
  // Plain bars take a metric, too.
  PlotOptions options = options_of({plain}, {});
  options.metric = "acc,last";
  EXPECT_THAT(error_of(options), HasSubstr("there are acc,none; acc,norm"));
  options.metric = "acc,norm";
  plot(options);
  EXPECT_EQ(this->table("interventions")[0]["value"], "0.25");
}

}  // namespace
}  // namespace sinkscope
