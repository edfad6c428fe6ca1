// Figures of one sample over its steps.
#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "draw/figures.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::size_t most_tracks = 8;   // that can be told apart
constexpr std::size_t usual_tracks = 4;  // where nobody chose

// The unmasking frontier: a dash between the steps t - 1 and t under each position that is written at t - 1.
std::vector<std::pair<double, double>> frontier(const FigureInput& input) {
  const SampleView& view = input.numbers.view;
  std::vector<std::pair<double, double>> dashes;
  for (std::size_t j = 0; j < view.shape.positions; ++j)
    for (std::size_t t = 1; t <= view.shape.steps; ++t)
      if (view.masked(t - 1, j) && !view.masked(t, j))
        dashes.emplace_back(static_cast<double>(j), static_cast<double>(t) - 0.5);
  return dashes;
}

// Of each position its final token, the more wanted the larger its C ever was.
std::vector<Label> position_labels(const FigureInput& input, const Matrix& columns) {
  const SampleView& view = input.numbers.view;
  std::vector<Label> labels;
  for (std::size_t j = 0; j < columns.columns; ++j) {
    std::string text = token_text(input, view.id(view.shape.steps, j));
    if (text.empty()) continue;
    double strength = 0;
    for (std::size_t t = 0; t < columns.rows; ++t)
      if (columns.at(t, j) > strength) strength = columns.at(t, j);
    labels.push_back({static_cast<double>(j), std::move(text), strength});
  }
  return labels;
}

// One map in each of a few layers, evenly spread: the one whose largest sink is largest on average. All of
// them where they are few enough and were chosen.
std::vector<std::size_t> drawn_maps(const FigureInput& input) {
  const SampleView& view = input.numbers.view;
  const std::size_t layers = view.shape.layers, heads = view.shape.heads;
  std::vector<std::size_t> maps;
  const bool named = !input.options.layers.ranges.empty() || !input.options.heads.ranges.empty();
  if (view.shape.maps() <= (named ? most_tracks : 1)) {
    for (std::size_t map = 0; map < view.shape.maps(); ++map) maps.push_back(map);
    return maps;
  }
  const std::size_t count = std::min(layers, named ? most_tracks : usual_tracks);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t layer = count == 1 ? 0 : i * (layers - 1) / (count - 1);
    const auto first = view.top.begin() + static_cast<std::ptrdiff_t>(layer * heads);
    maps.push_back(layer * heads +
                   static_cast<std::size_t>(
                       std::max_element(first, first + static_cast<std::ptrdiff_t>(heads)) - first));
  }
  return maps;
}

// First and last masked position at each step.
void add_masked_region(const FigureInput& input, Panel& panel) {
  const SampleView& view = input.numbers.view;
  Curve first{"", {}, CurveStyle::line, "#999999"}, last = first;
  first.title = "first and last masked position";
  for (std::size_t t = 0; t < view.shape.steps; ++t) {
    double low = std::nan(""), high = low;
    for (std::size_t j = 0; j < view.shape.positions; ++j) {
      if (!view.masked(t, j)) continue;
      if (std::isnan(low)) low = static_cast<double>(j);
      high = static_cast<double>(j);
    }
    first.points.emplace_back(t, low);
    last.points.emplace_back(t, high);
  }
  const auto nothing = [](const auto& point) { return std::isnan(point.second); };
  if (std::all_of(first.points.begin(), first.points.end(), nothing)) return;
  panel.curves.push_back(std::move(first));
  panel.curves.push_back(std::move(last));
}

}  // namespace

Figure heat_map_figure(const FigureInput& input) {
  const SampleView& view = input.numbers.view;
  const bool rows = input.run.rows;
  Figure figure = begin_figure(input, "heatmap", "attention received");
  figure.note = fmt::format("{}, {}, sample {}{}", value_title(input), maps_text(input), input.run.sample,
                            rows ? "; grey: no key yet" : "; white: unmasked from here on");
  figure.colour = value_title(input);
  figure.columns = {rows ? "token" : "step", "position", "value"};
  figure.aggregation["value"] =
      fmt::format("{} over the layers and heads, on the scale; drawn cells: maximum of their block",
                  name_of(input.options.aggregate));
  figure.aggregation["queries"] = rows ? "the last one" : "all";
  Panel panel;
  panel.x = cells_axis("position", view.shape.positions);
  panel.y = cells_axis(rows ? "generated token" : "step", view.shape.steps, /*down=*/true);
  panel.matrix = view.columns;
  panel.dashes = frontier(input);
  panel.labels = position_labels(input, view.columns);
  FigurePart& part = figure.parts[0];
  part.about["sample"] = input.run.sample;
  part.about["steps"] = view.shape.steps;
  part.about["positions"] = view.shape.positions;
  part.about["prompt_length"] = view.states.prompt_length;
  part.panels.push_back(std::move(panel));
  figure.height = 80;
  return figure;
}

Figure tracks_figure(const FigureInput& input) {
  const SampleView& view = input.numbers.view;
  const MapChoice& choice = input.run.choice;
  const auto positions = static_cast<double>(view.shape.positions);
  Figure figure = begin_figure(input, "tracks", "position of the largest sink");
  figure.columns = {"layer", "head", input.run.rows ? "token" : "step", "position"};
  Panel panel;
  panel.x = {input.run.rows ? "generated token" : "step", 0,
             std::max(1.0, static_cast<double>(view.shape.steps) - 1)};
  panel.y = {"position", -0.02 * positions, 1.02 * positions};
  panel.x.whole = panel.y.whole = true;
  add_masked_region(input, panel);
  FigurePart& part = figure.parts[0];
  const std::vector<std::size_t> maps = drawn_maps(input);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const std::size_t map = maps[i];
    const std::size_t layer = choice.layers[map / view.shape.heads],
                      head = choice.heads[map % view.shape.heads];
    Curve curve{
        fmt::format("layer {} head {}", layer, head), {}, CurveStyle::line_and_points, curve_colour(i)};
    for (std::size_t t = 0; t < view.shape.steps; ++t) {
      const int key = view.largest[t * view.shape.maps() + map];
      curve.points.emplace_back(t, key < 0 ? std::nan("") : static_cast<double>(key));
      part.rows.push_back({layer, head, t, key < 0 ? OrderedJson(nullptr) : OrderedJson(key)});
    }
    panel.curves.push_back(std::move(curve));
  }
  const bool all = maps.size() == view.shape.maps();
  figure.note = fmt::format("{}, sample {}{}", rule_text(input.options.detection), input.run.sample,
                            all ? "" : "; in each of these layers the head with the largest sink on average");
  figure.aggregation["value"] =
      "none: the sink with the largest C of each map (ties: the lower position), nothing where there is no "
      "sink";
  figure.aggregation["maps"] = all ? "all that were chosen"
                                   : "of layers evenly spread over those chosen the head whose largest sink "
                                     "has the largest C, mean over "
                                     "the steps";
  part.about["sample"] = input.run.sample;
  part.about["steps"] = view.shape.steps;
  part.about["positions"] = view.shape.positions;
  part.panels.push_back(std::move(panel));
  return figure;
}

}  // namespace sinkscope
