// Films: a picture for each step, and the video of them.
#include "draw/film.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "draw/film_source.h"
#include "record/python.h"
#include "support/csv.h"
#include "support/environment.h"
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
using testing::TemporaryFolder;

class Film : public ::testing::Test {
 protected:
  // A sink of every map that moves one position a step, from 10 on.
  std::string run(const std::string& name, int steps) const {
    PlantedSample sample;
    sample.steps = steps;
    sample.positions = 30;
    sample.plant = [](int step, int, int, int) { return Plant{{10 + step}, 0.4}; };
    PlantedRun planted(folder / name, 1, 2, name);
    planted.add(sample);
    planted.end();
    return folder / name;
  }
  PlotOptions options_of(const std::vector<std::string>& runs) const {
    PlotOptions options;
    options.runs.assign(runs.begin(), runs.end());
    options.out = folder / "out";
    return options;
  }
  std::vector<std::string> film(const PlotOptions& options, const FilmOptions& film_options) {
    PlotCallbacks callbacks;
    callbacks.token_text = [](const RunInfo&, std::int32_t id) {
      return std::optional("t" + std::to_string(id));
    };
    callbacks.note = [&](const std::string& line) { notes.push_back(line); };
    std::vector<std::string> names;
    for (const auto& path : film_runs(options, film_options, callbacks))
      names.push_back(path.filename().string());
    return names;
  }
  static FilmOptions small(VideoFormat video, bool frames) {
    FilmOptions options;
    options.video = video;
    options.frames = frames;
    options.width = 640;
    options.height = 360;
    return options;
  }
  TemporaryFolder folder;
  std::vector<std::string> notes;
};

TEST_F(Film, FramesShowEachStepsSink) {
  EXPECT_THAT(film(options_of({run("a", 11)}), small(VideoFormat::none, true)),
              ElementsAre("columns-frames", "columns.csv", "columns.json"));
  const auto frames = names_in(folder / "out/columns-frames");
  ASSERT_EQ(frames.size(), 11U);
  EXPECT_EQ(frames.front(), "00000.png");
  EXPECT_EQ(frames.back(), "00010.png");
  EXPECT_THAT(names_in(folder / "out"), ElementsAre("columns-frames", "columns.csv", "columns.json"));
  const auto rows = testing::read_csv(content_of(folder / "out/columns.csv"));
  ASSERT_EQ(rows.size(), 11U * 30);
  for (const auto& row : rows) {
    const bool sink = std::stoi(row.at("position")) == 10 + std::stoi(row.at("step"));
    EXPECT_EQ(row.at("sinks"), sink ? "2" : "0");
    EXPECT_NEAR(std::stod(row.at("value")), sink ? 12 : 18.0 / 29, 1e-4);
  }
  const json about = json::parse(content_of(folder / "out/columns.json"));
  EXPECT_EQ(about["film"]["frames"], 11);
  EXPECT_EQ(about["film"]["width"], 640);
  for (const int t : {0, 10}) {
    const auto picture = decode_png(content_of(folder / "out/columns-frames" / frames[t]));
    EXPECT_EQ(picture.width, 640U);
    EXPECT_EQ(picture.height, 360U);
    EXPECT_GT(picture.ink(), 0.02);
  }
  EXPECT_NE(content_of(folder / "out/columns-frames/00003.png"),
            content_of(folder / "out/columns-frames/00004.png"));
}

TEST_F(Film, TheTextFillsInAndSinksStandOnAGround) {
  const PlotOptions options = options_of({run("a", 11)});
  PlotCallbacks callbacks;
  callbacks.token_text = [](const RunInfo&, std::int32_t id) {
    return std::optional("t" + std::to_string(id));
  };
  const std::vector<PlotRun> runs = open_plot_runs(options, callbacks);
  const FilmSource source(runs[0], options, callbacks, false);
  const auto text = source.text(4, false);
  ASSERT_EQ(text.size(), 30U);
  EXPECT_EQ(text[0].text, "t1");
  EXPECT_EQ(text[12].text, "t50") << "written at step 4";
  EXPECT_NE(text[12].colour, text[11].colour) << "what is new is told from what was there";
  EXPECT_EQ(text[13].text, "░░░") << "as wide as the token that will stand there";
  EXPECT_EQ(text[29].text, "░") << "still masked in the end";
  for (std::size_t j = 0; j < text.size(); ++j) EXPECT_EQ(text[j].ground, j == 14 ? 3 : 0) << j;
  std::size_t columns = 0, later = 0;
  for (const auto& token : text) columns += token.columns;
  for (const auto& token : source.text(9, false)) later += token.columns;
  EXPECT_EQ(columns, later) << "nothing moves";
  EXPECT_EQ(source.text(0, true)[0].text, "a: ");
  const Panel panel = source.panel(4, 12, 100);
  EXPECT_EQ(panel.marks, (std::vector<std::pair<double, double>>{{14, -0.36}}));
  // Prompt, written, masked.
  EXPECT_EQ(panel.boxes[0].boxes.size(), 8U);
  EXPECT_EQ(panel.boxes[1].boxes.size(), 4U);
  EXPECT_EQ(panel.boxes[2].boxes.size(), 18U);
  const Panel narrow = source.panel(4, 12, 10);
  double highest = 0;
  for (const Boxes& boxes : narrow.boxes)
    for (const Box& box : boxes.boxes) highest = std::max(highest, box.top);
  EXPECT_NEAR(highest, 12, 1e-4) << "bars of several positions are their maximum";
}

TEST_F(Film, VideosHaveOneFrameAStep) {
  if (!run_process({"ffprobe", "-version"}).found) GTEST_SKIP() << "no ffprobe on this machine";
  const std::string a = run("a", 11), b = run("b", 7);
  for (const auto& [video, name] : {std::pair(VideoFormat::mp4, "columns.mp4"),
                                    {VideoFormat::webm, "columns.webm"},
                                    {VideoFormat::gif, "columns.gif"}}) {
    PlotOptions options = options_of({a, b});
    options.compare = true;
    EXPECT_THAT(film(options, small(video, false)), ElementsAre(name, "columns.csv", "columns.json"));
    const ProcessResult probe =
        run_process({"ffprobe", "-v", "error", "-count_frames", "-select_streams", "v", "-show_entries",
                     "stream=width,height,nb_read_frames", "-of", "csv=p=0", folder / "out" / name});
    EXPECT_EQ(probe.output, "640,360,11\n") << name << probe.errors;
  }
  EXPECT_THAT(names_in(folder / "out"),
              ElementsAre("columns.csv", "columns.gif", "columns.json", "columns.mp4", "columns.webm"));
}

TEST_F(Film, WithoutFfmpegAVideoIsRefusedAndFramesAreNot) {
  const std::string a = run("a", 3);
  std::filesystem::create_directory(folder / "bin");
  for (const char* program : {"gnuplot", "fc-list"})
    std::filesystem::create_symlink(std::filesystem::path("/usr/bin") / program, folder / "bin" / program);
  const testing::Environment path("PATH", (folder / "bin").c_str());
  try {
    film(options_of({a}), small(VideoFormat::mp4, false));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::AllOf(HasSubstr("ffmpeg is not installed"), HasSubstr("--frames")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  EXPECT_EQ(film(options_of({a}), small(VideoFormat::none, true)).size(), 3U);
}

TEST_F(Film, WhatHasNoFilmIsNamed) {
  const auto error_of = [&](const PlotOptions& options) -> std::string {
    try {
      film(options, small(VideoFormat::none, true));
    } catch (const std::exception& error) {
      EXPECT_FALSE(std::filesystem::exists(folder / "out"));
      return error.what();
    }
    return "";
  };
  PlotOptions options = options_of({run("a", 3)});
  options.figures = {"heatmap"};
  EXPECT_THAT(error_of(options), HasSubstr("--figure heatmap has no film; columns and maps have one"));
  options.figures = {"maps"};
  EXPECT_THAT(error_of(options), HasSubstr("no film of maps: "));
  options.figures = {};
  options.compare = true;
  EXPECT_THAT(error_of(options), HasSubstr("--compare takes two runs"));
}

TEST_F(Film, TextThatDoesNotFitIsSaid) {
  PlantedSample sample;
  sample.steps = 2;
  sample.positions = 3000;
  PlantedRun planted(folder / "long", 1, 1);
  planted.add(sample);
  planted.end();
  film(options_of({folder / "long"}), small(VideoFormat::none, true));
  EXPECT_THAT(notes, ElementsAre(HasSubstr("--size would give more")));
  EXPECT_EQ(json::parse(content_of(folder / "out/columns.json"))["film"]["text_cut"], true);
}

}  // namespace
}  // namespace sinkscope
