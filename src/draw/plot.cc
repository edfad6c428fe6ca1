#include "draw/plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <map>
#include <set>

#include "draw/figures.h"
#include "draw/gnuplot.h"
#include "draw/grid_figure.h"
#include "draw/recorded.h"
#include "draw/score_figure.h"
#include "draw/training_figures.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view interventions = "interventions";

struct Sources {
  std::vector<PlotRun> recorded;
  std::vector<RecordedTraining> training;
  std::vector<TaskScores> evaluations;
  std::vector<EvaluationGrid> grids;
};

bool wanted(const PlotOptions& options, std::string_view name) {
  return options.figures.empty() ||
         std::find(options.figures.begin(), options.figures.end(), name) != options.figures.end();
}

void check_names(const PlotOptions& options) {
  const std::vector<FigureName> names = figure_names();
  for (const std::string& name : options.figures) {
    const auto same = [&](const FigureName& known) { return known.name == name; };
    if (std::any_of(names.begin(), names.end(), same)) continue;
    std::vector<std::string_view> list;
    for (const FigureName& known : names) list.push_back(known.name);
    throw UsageError("--figure \"{}\" is none of {}", name, fmt::join(list, ", "));
  }
}

// An evaluation without masked keys has no grid to draw.
void open_evaluation(Sources& sources, const fs::path& folder, const PlotOptions& options) {
  EvaluationGrid grid = read_evaluation_grid(folder);
  if (grid.masks()) {
    sources.grids.push_back(std::move(grid));
    return;
  }
  for (TaskScores& scores : read_cell_scores(folder, options.metric))
    sources.evaluations.push_back(std::move(scores));
}

void open_source(Sources& sources, const fs::path& run, const PlotOptions& options,
                 const PlotCallbacks& callbacks) {
  std::error_code error;
  if (fs::is_regular_file(run, error)) {
    sources.evaluations.push_back(read_task_scores(run, options.metric));
  } else if (fs::exists(run / "run.json", error)) {
    sources.recorded.push_back(open_plot_run(run, options, callbacks));
  } else if (fs::exists(run / "metrics.jsonl", error)) {
    sources.training.push_back({label_of(run), run, read_training_curves(run / "metrics.jsonl")});
  } else if (fs::exists(run / "eval.json", error)) {
    open_evaluation(sources, run, options);
  } else if (fs::exists(run / "results.json", error)) {
    sources.evaluations.push_back(read_task_scores(run / "results.json", options.metric));
  } else {
    throw Error(
        "{} is {}; a run has run.json, a training run metrics.jsonl, an evaluation eval.json or results.json",
        run.string(), fs::is_directory(run, error) ? "no run directory" : "not there");
  }
}

// A grid is called by its model without the owner, as in a paper's table, unless several have that name.
void name_grids(std::vector<EvaluationGrid>& grids) {
  const auto name_of = [](const EvaluationGrid& grid) {
    return grid.model.substr(grid.model.rfind('/') + 1);  // all of it where there is no /
  };
  std::map<std::string, int> names;
  for (const EvaluationGrid& grid : grids) ++names[name_of(grid)];
  for (EvaluationGrid& grid : grids)
    if (!name_of(grid).empty() && names[name_of(grid)] == 1) grid.label = name_of(grid);
}

// Labels tell runs apart in file names and pictures.
void make_unique(Sources& sources) {
  std::set<std::string> taken;
  for (PlotRun& run : sources.recorded) run.label = free_label(run.label, taken);
  for (RecordedTraining& run : sources.training) run.label = free_label(run.label, taken);
  for (TaskScores& scores : sources.evaluations) scores.label = free_label(scores.label, taken);
  name_grids(sources.grids);
  for (EvaluationGrid& grid : sources.grids) grid.label = free_label(grid.label, taken);
}

void check_compare(const PlotOptions& options, const Sources& sources) {
  if (!options.compare) return;
  if (options.runs.size() != 2) throw UsageError("--compare takes two runs, not {}", options.runs.size());
  for (const std::size_t count : {sources.recorded.size(), sources.training.size()})
    if (count == 1) throw UsageError("--compare takes two runs of one kind");
}

// A figure asked for by name must have a run of its kind.
void check_kinds(const PlotOptions& options, const Sources& sources) {
  const auto check = [&](std::string_view name, bool there, const char* kind) {
    if (!options.figures.empty() && wanted(options, name) && !there)
      throw UsageError("--figure {} is a figure of {}, and no RUN is one", name, kind);
  };
  for (const FigureKind& kind : figure_kinds())
    check(kind.name, !sources.recorded.empty(), "run directories");
  for (const TrainingFigureKind& kind : training_figure_kinds())
    check(kind.name, !sources.training.empty(), "training runs (metrics.jsonl)");
  const bool evaluations = !sources.evaluations.empty() || !sources.grids.empty();
  check(interventions, evaluations, "evaluations (eval.json, results.json)");
  if (options.metric && !evaluations)
    throw UsageError("--metric is of evaluations (eval.json, results.json), and no RUN is one");
  if (wanted(options, interventions) && !sources.evaluations.empty() && !sources.grids.empty())
    throw UsageError(
        "{} masks sinks and {} has no masked sinks to compare; the figure interventions takes evaluations of "
        "one kind",
        sources.grids[0].folder, sources.evaluations[0].file.string());
}

// Asked for by name, a figure that cannot be drawn is an error.
void leave_out(std::string_view name, const std::string& why, const PlotOptions& options,
               const PlotCallbacks& callbacks) {
  if (!options.figures.empty()) throw Error("no figure {}: {}", name, why);
  callbacks.note(fmt::format("no figure {}: {}", name, why));
}

// The kinds that a run gives.
std::vector<const FigureKind*> kinds_of(const PlotRun& run, const PlotOptions& options,
                                        const PlotCallbacks& callbacks) {
  std::vector<const FigureKind*> kinds;
  for (const FigureKind& kind : figure_kinds()) {
    if (!wanted(options, kind.name)) continue;
    const std::string refusal = kind.refusal == nullptr ? "" : kind.refusal(run, options);
    if (refusal.empty())
      kinds.push_back(&kind);
    else
      leave_out(kind.name, refusal, options, callbacks);
  }
  return kinds;
}

Needs needs_of(const std::vector<const FigureKind*>& kinds) {
  Needs needs;
  for (const FigureKind* kind : kinds) {
    needs.view |= kind->needs.view;
    needs.share |= kind->needs.share;
    needs.tracks |= kind->needs.tracks;
    needs.tokens |= kind->needs.tokens;
    needs.overlap |= kind->needs.overlap;
    needs.histogram |= kind->needs.histogram;
  }
  return needs;
}

// Figures of one kind, one a run, as they are to be drawn.
void add_figures(std::vector<Figure>& all, std::vector<Figure> same, const PlotOptions& options) {
  if (same.empty()) return;
  const bool overlay = same[0].overlays && !options.compare;
  if (same.size() > 1 && (options.compare || overlay)) {
    all.push_back(joined(std::move(same), overlay));
    return;
  }
  for (Figure& figure : same) all.push_back(std::move(figure));
}

std::vector<Figure> recorded_figures(const std::vector<PlotRun>& runs, const PlotOptions& options,
                                     const PlotCallbacks& callbacks) {
  std::vector<std::vector<const FigureKind*>> kinds;
  std::vector<Needs> needs;
  std::size_t all = 0, done = 0;
  for (const PlotRun& run : runs) {
    kinds.push_back(kinds_of(run, options, callbacks));
    needs.push_back(needs_of(kinds.back()));
    all += needs.back().pooled() ? run.samples.size() : needs.back().view ? 1 : 0;
  }
  std::vector<RunNumbers> numbers;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!needs[i].view && !needs[i].pooled()) {
      numbers.emplace_back(options.detection);
      continue;
    }
    numbers.push_back(collect_numbers(runs[i], options, needs[i], [&] {
      if (callbacks.progress) callbacks.progress(++done, all);
    }));
  }
  std::vector<Figure> figures;
  for (const FigureKind& kind : figure_kinds()) {
    std::vector<Figure> same;
    for (std::size_t i = 0; i < runs.size(); ++i)
      if (std::find(kinds[i].begin(), kinds[i].end(), &kind) != kinds[i].end())
        same.push_back(kind.make({runs[i], numbers[i], options, callbacks}));
    add_figures(figures, std::move(same), options);
  }
  return figures;
}

std::vector<Figure> figures_of(const Sources& sources, const PlotOptions& options,
                               const PlotCallbacks& callbacks) {
  std::vector<Figure> figures = recorded_figures(sources.recorded, options, callbacks);
  for (const TrainingFigureKind& kind : training_figure_kinds()) {
    std::vector<Figure> same;
    for (const RecordedTraining& run : sources.training) {
      if (!wanted(options, kind.name)) continue;
      Figure figure = kind.make(run);
      if (!figure.parts[0].panels[0].curves.empty())
        same.push_back(std::move(figure));
      else
        leave_out(kind.name, (run.folder / "metrics.jsonl").string() + " has no such numbers", options,
                  callbacks);
    }
    add_figures(figures, std::move(same), options);
  }
  if (!sources.evaluations.empty() && wanted(options, interventions))
    figures.push_back(score_figure(sources.evaluations));
  if (!sources.grids.empty() && wanted(options, interventions))
    figures.push_back(grid_figure(sources.grids, options.metric, callbacks.note));
  return figures;
}

// Throws UsageError where the figure has no room in the size asked for.
PictureStyle style_of(const Figure& figure, const PlotOptions& options) {
  PictureStyle style = options.style;
  std::size_t panels = 0;
  for (const FigurePart& part : figure.parts) panels += part.panels.size();
  style.width = options.width.value_or(panels > 1 ? double_column : single_column);
  const Picture picture = picture_of(figure, style.width);
  style.height = options.height ? *options.height : natural_height(picture, style, figure.height);
  places_of(picture, style);
  constexpr double most_dots = 32767;  // Cairo's pictures
  if (style.format == PictureFormat::png &&
      std::max(style.width, style.height) / 25.4 * style.dots > most_dots)
    throw UsageError(
        "figure {} has {} panels and would be {:.0f} mm high, more than a PNG can; --format svg or pdf, "
        "fewer runs or --figure for others would be right",
        figure.name, panels, style.height);
  return style;
}

}  // namespace

std::vector<FigureName> figure_names() {
  std::vector<FigureName> names;
  for (const FigureKind& kind : figure_kinds()) names.push_back({kind.name, kind.what});
  for (const TrainingFigureKind& kind : training_figure_kinds()) names.push_back({kind.name, kind.what});
  names.push_back(
      {interventions, "scores of evaluations under interventions and controls (eval.json, results.json)"});
  return names;
}

std::vector<fs::path> plot_runs(const PlotOptions& options, const PlotCallbacks& callbacks) {
  check_names(options);
  validate_detection(options.detection);
  require_gnuplot();
  Sources sources;
  for (const fs::path& run : options.runs) open_source(sources, run, options, callbacks);
  make_unique(sources);
  check_compare(options, sources);
  check_kinds(options, sources);
  const std::vector<Figure> figures = figures_of(sources, options, callbacks);
  if (figures.empty()) throw Error("none of the runs gives a figure");
  std::vector<PictureStyle> styles;  // all of them before the first file is written
  for (const Figure& figure : figures) styles.push_back(style_of(figure, options));
  std::vector<fs::path> paths;
  bool missing_glyphs = false;
  const bool many = options.runs.size() > 1;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const Figure& figure = figures[i];
    const bool of_one = many && figure.parts.size() == 1;
    const FigureFiles files{options.out, of_one ? figure.parts[0].run + "-" + figure.name : figure.name,
                            OrderedJson{{"format", 1}, {"version", SINKSCOPE_VERSION}, {"command", "plot"}}};
    for (fs::path& path : write_figure(figure, styles[i], files, missing_glyphs))
      paths.push_back(std::move(path));
  }
  if (missing_glyphs)
    callbacks.note(
        "no installed font has some of the characters; they are written as <U+XXXX> (Debian's package "
        "fonts-noto-core has most scripts, fonts-noto-cjk the East Asian ones)");
  return paths;
}

}  // namespace sinkscope
