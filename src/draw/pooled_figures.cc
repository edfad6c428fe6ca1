// Figures of counts over samples, steps, layers and heads.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "draw/figures.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

template <typename Numerator, typename Denominator>
double share(Numerator part, Denominator all) {
  return all == 0 ? std::nan("") : static_cast<double>(part) / static_cast<double>(all);
}

OrderedJson value(double number) { return std::isnan(number) ? OrderedJson(nullptr) : OrderedJson(number); }

Figure begin_pooled(const FigureInput& input, std::string_view name, std::string_view title) {
  Figure figure = begin_figure(input, name, title);
  const MapChoice& choice = input.run.choice;
  const RunModel& model = input.run.recorded.info.model;
  std::string maps = fmt::format("{} × {} maps", choice.layers.size(), choice.heads.size());
  if (static_cast<std::int64_t>(choice.maps()) != model.layers * model.heads)
    maps += fmt::format(" of {} × {}", model.layers, model.heads);
  figure.note = fmt::format("{}; {}, {}", rule_text(input.options.detection), samples_text(input), maps);
  figure.parts[0].about["samples"] = input.run.samples;
  return figure;
}

std::vector<Tick> number_ticks(const std::vector<std::size_t>& numbers, std::size_t most) {
  std::vector<Tick> ticks;
  const std::size_t every = (numbers.size() + most - 1) / most;
  for (std::size_t i = 0; i < numbers.size(); i += every)
    ticks.push_back({static_cast<double>(i), std::to_string(numbers[i])});
  return ticks;
}

// Layers against a value: x is the layer's own number.
Panel depth_panel(const FigureInput& input, const std::vector<double>& values, const std::string& title) {
  Panel panel;
  const std::vector<std::size_t>& layers = input.run.choice.layers;
  Curve curve{"", {}, CurveStyle::line_and_points, curve_colour(0)};
  double largest = 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    curve.points.emplace_back(layers[i], values[i]);
    if (values[i] > largest) largest = values[i];
  }
  panel.x = {"layer", static_cast<double>(layers.front()) - 0.3, static_cast<double>(layers.back()) + 0.3};
  panel.x.whole = true;
  panel.y = {title, 0, largest > 0 ? 1.08 * largest : 1};
  panel.curves.push_back(std::move(curve));
  return panel;
}

// Counts by a whole number as points on logarithmic axes.
Panel count_panel(const std::vector<std::pair<double, double>>& counts, const std::string& x,
                  const std::string& y) {
  Panel panel;
  double farthest = 1, most = 1;
  for (const auto& [at, count] : counts) {
    farthest = std::max(farthest, at);
    most = std::max(most, count);
  }
  panel.x = {x, 0, 1.04 * farthest};
  panel.x.whole = true;
  panel.y = {y, 0.7, 2 * most, true};
  panel.curves.push_back({"", counts, CurveStyle::points, curve_colour(0)});
  return panel;
}

}  // namespace

Figure layer_head_figure(const FigureInput& input) {
  const ShareSums& sums = input.numbers.share;
  const MapChoice& choice = input.run.choice;
  Figure figure = begin_pooled(input, "layer-head", "largest sink by layer and head");
  figure.note += "; mean over steps with a sink, grey: never one";
  figure.colour = value_title(input);
  figure.columns = {"layer", "head", "value"};
  figure.aggregation["value"] =
      "mean over samples and steps with a sink of the largest sink's C, on the scale";
  Matrix matrix{choice.layers.size(), choice.heads.size(), {}};
  for (std::size_t map = 0; map < choice.maps(); ++map)
    matrix.values.push_back(static_cast<float>(share(sums.top_sink[map], sums.top_steps[map])));
  Panel panel;
  panel.x = cells_axis("head", choice.heads.size());
  panel.y = cells_axis("layer", choice.layers.size(), /*down=*/true);
  panel.x.ticks = number_ticks(choice.heads, 9);
  panel.y.ticks = number_ticks(choice.layers, 9);
  panel.matrix = std::move(matrix);
  figure.parts[0].panels.push_back(std::move(panel));
  return figure;
}

Figure histogram_figure(const FigureInput& input) {
  constexpr std::size_t most_bins = 64;
  const ValueHistogram& histogram = input.numbers.histogram;
  Figure figure = begin_pooled(input, "histogram", "how much attention cells draw");
  figure.note = fmt::format("a cell: one (sample, step, layer, head, {}); {}, {} × {} maps",
                            input.run.rows ? "key" : "position", samples_text(input),
                            input.run.choice.layers.size(), input.run.choice.heads.size());
  figure.columns = {"from", "to", "cells"};
  figure.aggregation = {{"quantity", figure.aggregation["quantity"]},
                        {"scale", name_of(input.options.detection.scale)},
                        {"value", "number of cells whose C, on the scale, lies in [from, to)"}};
  const std::size_t factor = pooling_factor(histogram.counts.size(), most_bins);
  const double width = histogram.width * static_cast<double>(factor);
  Boxes boxes{"", {}, curve_colour(0)};
  double most = 1, end = width;
  for (std::size_t first = 0; first < histogram.counts.size(); first += factor) {
    std::uint64_t cells = 0;
    for (std::size_t i = first; i < std::min(first + factor, histogram.counts.size()); ++i)
      cells += histogram.counts[i];
    const double left = histogram.width * static_cast<double>(first);
    figure.parts[0].rows.push_back({left, left + width, cells});
    end = left + width;
    most = std::max(most, static_cast<double>(cells));
    if (cells > 0) boxes.boxes.push_back({left, left + width, 0.5, static_cast<double>(cells)});
  }
  Panel panel;
  panel.x = {value_title(input), 0, end};
  panel.y = {"cells", 0.5, 2 * most, true};
  panel.boxes.push_back(std::move(boxes));
  figure.parts[0].panels.push_back(std::move(panel));
  return figure;
}

std::string epsilon_refusal(const PlotRun&, const PlotOptions& options) {
  return options.detection.rule == SinkRule::topk ? "rule topk has no threshold to vary" : "";
}

Figure epsilon_figure(const FigureInput& input) {
  const ShareSums& sums = input.numbers.share;
  const std::string name(*threshold_name(input.options.detection.rule));
  Figure figure = begin_pooled(input, "epsilon", "cells that are no sinks");
  figure.overlays = true;
  figure.columns = {name, "share_of_non_sinks"};
  figure.aggregation["value"] =
      "1 - sinks / cells at each threshold; a cell is one (sample, step, layer, head, key)";
  const std::vector<double> grid = sweep_grid(input.options.detection);
  const std::vector<std::uint64_t> above = sums.margins.above_grid();
  Curve curve{"", {}, CurveStyle::line, curve_colour(0)};
  double lowest = 1;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    const double rest = 1 - share(above[i], sums.cells);
    lowest = std::min(lowest, rest);
    curve.points.emplace_back(grid[i], rest);
    figure.parts[0].rows.push_back({grid[i], rest});
  }
  Panel panel;
  panel.x = {name == "z" ? "z" : "ε", 0, grid.back()};
  panel.y = {"share of cells", std::min(0.95, std::floor(lowest * 20) / 20), 1};
  panel.curves.push_back(std::move(curve));
  figure.parts[0].panels.push_back(std::move(panel));
  return figure;
}

Figure layers_figure(const FigureInput& input) {
  const ShareSums& sums = input.numbers.share;
  Figure figure = begin_pooled(input, "layers", "sinks by depth");
  figure.overlays = true;
  figure.columns = {"layer", "sinks"};
  figure.aggregation["value"] = "mean over samples, steps and heads of the number of sinks";
  std::vector<double> values;
  for (const std::uint64_t sinks : sums.layer_sinks)
    values.push_back(share(sinks, sums.steps * input.run.choice.heads.size()));
  for (std::size_t i = 0; i < values.size(); ++i)
    figure.parts[0].rows.push_back({input.run.choice.layers[i], value(values[i])});
  figure.parts[0].panels.push_back(depth_panel(input, values, "sinks of a head"));
  return figure;
}

Figure absorption_figure(const FigureInput& input) {
  const OverlapSums& sums = input.numbers.overlap;
  Figure figure = begin_pooled(input, "absorption", "attention that sinks absorb");
  figure.overlays = true;
  figure.columns = {"layer", "share"};
  figure.aggregation["value"] =
      "attention of the sinks / all attention, added up over samples, steps and heads";
  std::vector<double> values;
  for (std::size_t i = 0; i < sums.mass.size(); ++i) values.push_back(share(sums.sink_mass[i], sums.mass[i]));
  for (std::size_t i = 0; i < values.size(); ++i)
    figure.parts[0].rows.push_back({input.run.choice.layers[i], value(values[i])});
  figure.parts[0].panels.push_back(depth_panel(input, values, "share of all attention"));
  return figure;
}

Figure lifetimes_figure(const FigureInput& input) {
  Figure figure = begin_pooled(input, "lifetimes", "how long sinks last");
  figure.overlays = true;
  figure.columns = {"steps", "lives", "touching_an_end"};
  figure.aggregation["value"] =
      "lives added up over samples, layers, heads and positions; a life is a maximal run of steps at which a "
      "position is a sink of a head";
  std::vector<std::pair<double, double>> counts;
  for (const auto& [length, count] : input.numbers.tracks.lifetimes) {
    counts.emplace_back(length, count.lives);
    figure.parts[0].rows.push_back({length, count.lives, count.touching});
  }
  figure.parts[0].panels.push_back(count_panel(counts, input.run.rows ? "tokens" : "steps", "lives"));
  return figure;
}

Figure jumps_figure(const FigureInput& input) {
  Figure figure = begin_pooled(input, "jumps", "how far the largest sink jumps");
  figure.overlays = true;
  figure.columns = {"distance", "jumps"};
  figure.aggregation["value"] =
      "jumps added up over samples, layers and heads; a jump is the distance between the largest sinks of "
      "neighbouring steps where both exist and differ";
  std::vector<std::pair<double, double>> counts;
  for (const auto& [distance, count] : input.numbers.tracks.jumps) {
    counts.emplace_back(distance, count);
    figure.parts[0].rows.push_back({distance, count});
  }
  figure.parts[0].panels.push_back(count_panel(counts, "positions", "jumps"));
  return figure;
}

}  // namespace sinkscope
