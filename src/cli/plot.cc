// `sinkscope plot`: figures of recorded runs, training runs and evaluations.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/option_table.h"
#include "cli/progress.h"
#include "cli/result_files.h"
#include "cli/rule_options.h"
#include "cli/token_texts.h"
#include "draw/film.h"
#include "draw/plot.h"

namespace sinkscope {
namespace {

struct PlotCommand {
  std::vector<std::string> runs, figures;
  std::string out, format = "png", palette = "viridis", aggregate = "mean", column, layer, head, tokenizer;
  RuleOptions rule;
  std::optional<std::int64_t> sample, step;
  std::optional<std::string> metric;
  std::optional<double> width, height;
  std::string video, size = "1280x720";
  std::optional<double> fps;
  bool frames = false;
  bool compare = false;
  bool list = false;
  bool quiet = false;
};

void check_length(const char* option, const std::optional<double>& length) {
  constexpr double least = 20, most = 500;  // 5,906 pixels of a PNG
  if (length && !(*length >= least && *length <= most))
    throw UsageError("{} is {} mm; {} to {} is right", option, *length, least, most);
}

std::optional<double> width_of(const PlotCommand& command) {
  check_length("--width", command.width);
  check_length("--height", command.height);
  if (command.width && !command.column.empty())
    throw UsageError("--column and --width both say how wide the figure is; give one of them");
  if (command.column == "single") return single_column;
  if (command.column == "double") return double_column;
  return command.width;
}

PlotOptions options_of(const PlotCommand& command) {
  PlotOptions options;
  if (command.out.empty()) throw UsageError("--out is required: the folder for the figures");
  if (command.runs.empty())
    throw UsageError("RUN is required: run directories, training runs or evaluations");
  check_result_folder(command.out, "the figures");
  options.runs.assign(command.runs.begin(), command.runs.end());
  options.figures = command.figures;
  options.out = command.out;
  options.style.format = parse_picture_format(command.format);
  options.style.palette = parse_palette(command.palette);
  options.width = width_of(command);
  options.height = command.height;
  options.detection = detection_of(command.rule);
  options.aggregate = parse_aggregate(command.aggregate);
  options.sample = command.sample;
  options.step = command.step;
  options.layers = parse_ranges(command.layer, "--layer");
  options.heads = parse_ranges(command.head, "--head");
  options.metric = command.metric;
  options.compare = command.compare;
  return options;
}

// "1280x720": even numbers, which video formats ask for.
void read_size(const std::string& text, FilmOptions& film) {
  constexpr int least = 320, most = 4096;
  const std::size_t cross = text.find('x');
  const auto number = [&](std::string_view part, int& value) {
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    return error == std::errc() && end == part.data() + part.size() && value >= least && value <= most &&
           value % 2 == 0;
  };
  if (cross == std::string::npos || !number(std::string_view(text).substr(0, cross), film.width) ||
      !number(std::string_view(text).substr(cross + 1), film.height))
    throw UsageError("--size \"{}\" is not of the form 1280x720, even numbers from {} to {}", text, least,
                     most);
}

FilmOptions film_of(const PlotCommand& command) {
  FilmOptions film;
  if (!command.video.empty()) film.video = parse_video_format(command.video);
  film.frames = command.frames;
  film.rate = command.fps.value_or(film.rate);
  if (!(film.rate >= 0.1 && film.rate <= 120))
    throw UsageError("--fps is {}; 0.1 to 120 is right", film.rate);
  read_size(command.size, film);
  return film;
}

// What belongs to pictures alone would be read and never used.
void check_film_options(const PlotCommand& command, const CLI::App& app) {
  const bool film = !command.video.empty() || command.frames;
  const auto check = [&](const char* option, bool of_film) {
    if (app.count(option) > 0 && film != of_film)
      throw UsageError(
          "{} is of {}", option,
          of_film ? "films: --video or --frames" : "pictures, and --video and --frames make films");
  };
  for (const char* option : {"--fps", "--size"}) check(option, true);
  for (const char* option : {"--format", "--column", "--width", "--height", "--step", "--metric"})
    check(option, false);
}

// An option of a figure that is not drawn would be read and never used.
void check_figure_options(const PlotCommand& command, const CLI::App& app) {
  const auto check = [&](const char* option, const std::vector<std::string>& of) {
    if (app.count(option) == 0 || command.figures.empty()) return;
    for (const std::string& figure : of)
      if (std::find(command.figures.begin(), command.figures.end(), figure) != command.figures.end()) return;
    throw UsageError("{} is of --figure {}", option, fmt::join(of, " and "));
  };
  check("--step", {"maps"});
  check("--metric", {"interventions"});
  check("--aggregate", {"heatmap", "columns"});
  check("--palette", {"heatmap", "maps", "layer-head"});
}

std::string names_text() {
  std::string text;
  for (const FigureName& figure : figure_names()) text += fmt::format("{:<14}{}\n", figure.name, figure.what);
  return text;
}

void plot_command(const PlotCommand& command, const CLI::App& app) {
  check_film_options(command, app);
  check_figure_options(command, app);
  if (command.list) {
    fmt::print("{}", names_text());
    return;
  }
  const PlotOptions options = options_of(command);
  TokenTexts texts(command.tokenizer, command.quiet);
  Progress bar("reading", command.quiet);
  PlotCallbacks callbacks;
  callbacks.token_text = [&](const RunInfo& run, std::int32_t id) { return texts.text(run, id); };
  callbacks.note = [&](const std::string& line) {
    bar.finish();
    note(command.quiet, line);
  };
  callbacks.progress = [&](std::size_t done, std::size_t all) { show_samples(bar, done, all); };
  const bool film = !command.video.empty() || command.frames;
  const std::vector<std::filesystem::path> paths =
      film ? film_runs(options, film_of(command), callbacks) : plot_runs(options, callbacks);
  bar.finish();
  for (const std::filesystem::path& path : paths) fmt::print("{}\n", path.string());
}

}  // namespace

void add_plot_command(CLI::App& program) {
  auto options = std::make_shared<PlotCommand>();
  CLI::App* command = program.add_subcommand("plot", "Figures of runs, each with its numbers");
  OptionTable table(*command);
  command->add_option(
      "RUN", options->runs,
      "run directories, training runs (metrics.jsonl), evaluations (eval.json, results.json)");
  table.repeatable("figure", options->figures, "draw this one; repeatable [all that the runs allow]");
  command->add_option("-o,--out", options->out, "folder for the figures, made where missing");
  table.choice("format", options->format, {"png", "svg", "pdf"}, "of the pictures");
  table.flag("compare", options->compare, "two runs side by side on one scale");
  table.option("layer", options->layer, "only these layers, as in 0-3,7 [all]");
  table.option("head", options->head, "only these heads, as in 0-3,7 [all]");
  table.choice("aggregate", options->aggregate, {"mean", "max"}, "heatmap: over layers and heads");
  table.option("sample", options->sample,
               "index of the sample [heatmap, tracks, maps: the first; others: all]");
  table.option("step", options->step,
               "maps: this step and the one before [where the largest column jumps farthest]");
  table.option("metric", options->metric,
               "interventions: METRIC,FILTER, as in exact_match,flexible-extract [the first of each task]");
  declare_rule_options(table, options->rule);
  table.choice(
      "column", options->column, {"single", "double"},
      fmt::format("width: a column of a page ({} mm) or two ({} mm) [single; double for several panels]",
                  single_column, double_column));
  table.option("width", options->width, "mm, in place of --column");
  table.option("height", options->height, "mm [the figure's own]");
  table.choice("palette", options->palette, {"viridis", "cividis"}, "colours of heat maps");
  table.choice("video", options->video, {"mp4", "webm", "gif"},
               "a film over the steps in place of pictures (ffmpeg): --figure columns or maps [columns]");
  table.flag("frames", options->frames, "leave the film's pictures; without --video no ffmpeg is needed");
  table.option("fps", options->fps, "film: steps a second [10]");
  table.option("size", options->size, "film: width and height in pixels");
  table.option("tokenizer", options->tokenizer,
               "model or folder whose tokenizer names the tokens [each run's own model]");
  table.flag("list", options->list, "print the names of the figures and end");
  table.flag("quiet", options->quiet, "no progress and no notes on stderr");
  command->footer(
      "Figures:\n" + names_text() +
      "\nEach leaves NAME.png (svg, pdf), NAME.csv with what is drawn and NAME.json with how it was "
      "aggregated; docs/plot.md describes them.");
  command->callback([options, command] { plot_command(*options, *command); });
}

}  // namespace sinkscope
