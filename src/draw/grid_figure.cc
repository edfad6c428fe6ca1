#include "draw/grid_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;
using Note = std::function<void(const std::string& line)>;

constexpr const char* band_colour = "#d4d4d4";
constexpr const char* line_colour = "#000000";
constexpr double bars_share = 0.84;  // of the room of a number of keys
constexpr double rank_gap = 0.55;    // between ranks, in that room

struct Control {
  std::string name, colour;
};

// Blue, orange and green of Okabe and Ito; a grey that is as light as the orange in print without colours.
const std::array<Control, 4>& known_controls() {
  static const std::array<Control, 4> known{
      {{"none", "#0072b2"}, {"random", "#999999"}, {"bottom", "#e69f00"}, {"matched", "#009e73"}}};
  return known;
}

/// Scores of one task by one metric and filter.
struct TaskGrid {
  std::string task, metric, filter;
  std::vector<GridScore> scores;

  std::string measure() const { return metric + "," + filter; }
};

template <typename Value>
void add_new(std::vector<Value>& values, const Value& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

std::vector<std::string> tasks_of(const std::vector<EvaluationGrid>& grids) {
  std::vector<std::string> tasks;
  for (const EvaluationGrid& grid : grids)
    for (const GridScore& score : grid.scores) add_new(tasks, score.task);
  return tasks;
}

void check_metric(const std::vector<EvaluationGrid>& grids, const std::optional<std::string>& metric) {
  std::vector<std::string> there;
  for (const EvaluationGrid& grid : grids)
    for (const GridScore& score : grid.scores) add_new(there, score.metric + "," + score.filter);
  if (metric && std::find(there.begin(), there.end(), *metric) == there.end())
    throw UsageError("--metric \"{}\" is in no evaluation; there are {}", *metric, fmt::join(there, "; "));
}

std::optional<TaskGrid> task_grid(const EvaluationGrid& grid, const std::string& task,
                                  const std::optional<std::string>& metric, const Note& note) {
  std::optional<TaskGrid> found;
  bool there = false, masks = false;
  for (const GridScore& score : grid.scores) {
    if (score.task != task) continue;
    there = true;
    const std::string measure = score.metric + "," + score.filter;
    if (metric && measure != *metric) continue;
    if (!found) found = TaskGrid{task, score.metric, score.filter, {}};
    if (measure != found->measure()) continue;
    masks = masks || score.top_k > 0;
    found->scores.push_back(score);
  }
  if (found && masks) return found;
  if (there && found) note(fmt::format("no panel of {}, {}: none of its cells masks keys", grid.label, task));
  if (there && !found) note(fmt::format("no panel of {}, {}: it has no {}", grid.label, task, *metric));
  return std::nullopt;
}

// The known ones in their order, then others.
std::vector<Control> controls_of(const std::vector<EvaluationGrid>& grids) {
  std::vector<std::string> names;
  for (const EvaluationGrid& grid : grids)
    for (const GridScore& score : grid.scores)
      if (score.top_k > 0) add_new(names, score.control);
  std::vector<Control> controls;
  for (const Control& known : known_controls())
    if (std::erase(names, known.name) > 0) controls.push_back(known);
  for (std::size_t i = 0; i < names.size(); ++i) controls.push_back({names[i], curve_colour(3 + 2 * i)});
  return controls;
}

std::string title_of(const Control& control) {
  return control.name == "none" ? "the sinks" : "control: " + control.name;
}

/// Where a cell's bars stand.
struct Room {
  std::string rank;
  std::int64_t top_k = 0;
  double left = 0;  // one wide
};

std::vector<Room> rooms_of(const TaskGrid& grid) {
  std::vector<std::string> ranks;
  for (const GridScore& score : grid.scores)
    if (score.top_k > 0) add_new(ranks, score.rank);
  std::vector<Room> rooms;
  double left = 0;
  for (const std::string& rank : ranks) {
    std::vector<std::int64_t> numbers;
    for (const GridScore& score : grid.scores)
      if (score.top_k > 0 && score.rank == rank) add_new(numbers, score.top_k);
    for (const std::int64_t number : numbers) rooms.push_back({rank, number, left++});
    left += rank_gap;
  }
  return rooms;
}

Axis x_axis(const std::vector<Room>& rooms) {
  Axis axis{"K keys masked, by rank", -0.3, rooms.back().left + 1.3};
  for (std::size_t i = 0, first = 0; i < rooms.size(); ++i) {
    axis.ticks.push_back({rooms[i].left + 0.5, std::to_string(rooms[i].top_k)});
    if (i + 1 < rooms.size() && rooms[i + 1].rank == rooms[i].rank) continue;
    axis.groups.push_back({(rooms[first].left + rooms[i].left + 1) / 2, rooms[i].rank});
    first = i + 1;
  }
  return axis;
}

// The band lies behind the bars, the line over them.
void draw_unmasked(Panel& panel, const GridScore& score) {
  if (score.standard_error && *score.standard_error > 0)
    panel.boxes.push_back({"",
                           {{panel.x.from, panel.x.to, score.value - *score.standard_error,
                             score.value + *score.standard_error}},
                           band_colour});
  panel.curves.push_back({"nothing masked",
                          {{panel.x.from, score.value}, {panel.x.to, score.value}},
                          CurveStyle::line,
                          line_colour,
                          3});
}

void draw_bars(Panel& panel, const TaskGrid& grid, const std::vector<Room>& rooms,
               const std::vector<Control>& controls) {
  std::vector<Control> here;
  for (const Control& control : controls)
    if (std::any_of(grid.scores.begin(), grid.scores.end(),
                    [&](const GridScore& score) { return score.top_k > 0 && score.control == control.name; }))
      here.push_back(control);
  const double width = bars_share / static_cast<double>(here.size());
  for (std::size_t c = 0; c < here.size(); ++c) {
    Boxes boxes{title_of(here[c]), {}, here[c].colour};
    for (const GridScore& score : grid.scores) {
      if (score.top_k == 0 || score.control != here[c].name) continue;
      const auto room = std::find_if(rooms.begin(), rooms.end(), [&](const Room& one) {
        return one.rank == score.rank && one.top_k == score.top_k;
      });
      const double left = room->left + (1 - bars_share) / 2 + width * static_cast<double>(c);
      const double middle = left + width / 2;
      boxes.boxes.push_back({left + 0.03 * width, left + 0.97 * width, 0, score.value});
      // A bar of no height looks like one that is not there.
      if (score.value == 0) panel.texts.push_back({middle, 0, "0", true});
      if (score.standard_error && *score.standard_error > 0)
        panel.errors.push_back(
            {middle, score.value - *score.standard_error, score.value + *score.standard_error});
    }
    panel.boxes.push_back(std::move(boxes));
  }
}

Panel panel_of(const EvaluationGrid& grid, const TaskGrid& task, const std::vector<Control>& controls,
               bool several) {
  const std::vector<Room> rooms = rooms_of(task);
  Panel panel;
  panel.title = several ? grid.label + ": " + task.task : task.task;
  panel.y.title = task.metric + ", " + task.filter;
  panel.x = x_axis(rooms);
  for (const GridScore& score : task.scores)
    if (score.top_k == 0) draw_unmasked(panel, score);
  draw_bars(panel, task, rooms, controls);
  return panel;
}

std::vector<OrderedJson> row_of(const EvaluationGrid& grid, const GridScore& score) {
  return {grid.model,
          score.task,
          score.metric,
          score.filter,
          score.top_k > 0 ? OrderedJson(score.rank) : OrderedJson(nullptr),
          score.top_k,
          score.control,
          score.value,
          score.standard_error ? OrderedJson(*score.standard_error) : OrderedJson(nullptr)};
}

// 0 to 1 and a little for error bars at the top; further only where scores are.
void set_y_axes(std::vector<Panel>& panels, const std::vector<FigurePart>& parts) {
  constexpr std::size_t value_column = 7;
  double lowest = 0, highest = 1;
  for (const FigurePart& part : parts)
    for (const auto& row : part.rows) {
      lowest = std::min(lowest, row[value_column].get<double>());
      highest = std::max(highest, row[value_column].get<double>());
    }
  for (Panel& panel : panels) {
    panel.y.from = lowest < 0 ? 1.08 * lowest : 0;
    panel.y.to = highest > 1 ? 1.08 * highest : 1.04;
    for (PanelText& text : panel.texts) text.y = 0.035 * (panel.y.to - panel.y.from);
  }
}

void describe(Figure& figure, const std::optional<std::string>& metric) {
  figure.name = "interventions";
  figure.title = "scores with masked keys";
  figure.note = fmt::format("error bars and band: one standard error; metric and filter: {}",
                            metric ? "--metric " + *metric : "the first of each task");
  figure.columns = {"model", "task", "metric", "filter", "rank", "top_k", "control", "value", "stderr"};
  figure.height = 70;
  figure.aggregation["value"] = "mean over the problems of a task, as evaluated (table of eval.json)";
  figure.aggregation["stderr"] = "of that mean; error bars and band: one to either side";
  figure.aggregation["metric"] = metric ? *metric : "the first of each task in the table";
  figure.aggregation["control"] = "none: the sinks; others: as many keys of the same step, not the sinks";
}

}  // namespace

Figure grid_figure(const std::vector<EvaluationGrid>& grids, const std::optional<std::string>& metric,
                   const Note& note) {
  check_metric(grids, metric);
  Figure figure;
  describe(figure, metric);
  for (const EvaluationGrid& grid : grids)
    figure.parts.push_back({grid.label,
                            {},
                            {},
                            {{"run", grid.folder},
                             {"kind", "evaluation"},
                             {"model", grid.model},
                             {"tasks", OrderedJson::array()}}});
  std::vector<Panel> panels;
  const std::vector<Control> controls = controls_of(grids);
  for (const std::string& task : tasks_of(grids))
    for (std::size_t i = 0; i < grids.size(); ++i) {
      const std::optional<TaskGrid> scores = task_grid(grids[i], task, metric, note);
      if (!scores) continue;
      FigurePart& part = figure.parts[i];
      panels.push_back(panel_of(grids[i], *scores, controls, grids.size() > 1));
      part.about["tasks"].push_back({{"task", task},
                                     {"metric", scores->metric},
                                     {"filter", scores->filter},
                                     {"samples", scores->scores[0].samples}});
      for (const GridScore& score : scores->scores) part.rows.push_back(row_of(grids[i], score));
    }
  if (panels.empty())
    throw Error("no figure interventions: no cell that masks keys has {}",
                metric ? *metric : "a score by the first metric of its task");
  set_y_axes(panels, figure.parts);
  // All of them in the first part: tasks below each other, evaluations beside each other.
  figure.parts[0].panels = std::move(panels);
  return figure;
}

}  // namespace sinkscope
