// Whole attention maps of one layer and head before and after a step.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "draw/figures.h"
#include "draw/map_file.h"

namespace sinkscope {
namespace {

std::string map_name(std::size_t layer, std::size_t head) { return fmt::format("map_L{}_H{}", layer, head); }

// Pairs of the chosen ones that the sample has, ascending.
std::vector<std::pair<std::size_t, std::size_t>> recorded_maps(const NpzFile& file, const MapChoice& choice) {
  std::vector<std::pair<std::size_t, std::size_t>> found;
  for (const std::size_t layer : choice.layers)
    for (const std::size_t head : choice.heads)
      if (file.contains(map_name(layer, head))) found.emplace_back(layer, head);
  return found;
}

// The t after which the largest column is farthest from where it was; ties: the first.
std::size_t farthest_jump(const MapFile& maps) {
  std::size_t best = std::min<std::size_t>(1, maps.steps() - 1);
  std::ptrdiff_t farthest = -1, before = 0;
  for (std::size_t t = 0; t < maps.steps(); ++t) {
    const std::vector<float> sums = column_sums(maps.map(t));
    const std::ptrdiff_t here = std::max_element(sums.begin(), sums.end()) - sums.begin();
    if (t > 0 && std::abs(here - before) > farthest) {
      farthest = std::abs(here - before);
      best = t;
    }
    before = here;
  }
  return best;
}

Panel map_panel(const FigureInput& input, const MapFile& maps, std::size_t t) {
  Panel panel;
  panel.title = fmt::format("step {}", t);
  panel.x = cells_axis("key", maps.positions());
  panel.y = cells_axis("query", maps.positions(), /*down=*/true);
  panel.matrix = maps.map(t);
  const std::vector<float> sums = column_sums(*panel.matrix);
  for (std::size_t j = 0; j < sums.size(); ++j) {
    std::string text = token_text(input, maps.id(t, j));
    if (!text.empty()) panel.labels.push_back({static_cast<double>(j), std::move(text), sums[j]});
  }
  return panel;
}

}  // namespace

MapFile::MapFile(const PlotRun& run)
    : where_(sample_path(run.recorded.folder, run.sample).string()), file_(where_) {
  const auto found = recorded_maps(file_, run.choice);
  if (found.empty()) throw Error("{} has none of the maps asked for", where_);
  layer_ = found[0].first;
  head_ = found[0].second;
  states_ = read_states(file_, where_);
  const NpzArray array = file_.array(map_name(layer_, head_));
  const auto size = static_cast<std::int64_t>(states_.positions);
  const std::vector<std::int64_t> right{static_cast<std::int64_t>(states_.steps), size, size};
  if (array.shape != right)
    throw Error("{}: {} has the shape {}; states asks for [T,S,S] = {}", where_, map_name(layer_, head_),
                shape_text(array.shape), shape_text(right));
  if (array.type != ArrayType::float16 && array.type != ArrayType::float32)
    throw Error("{}: {} holds {}; float16 or float32 is right", where_, map_name(layer_, head_),
                name_of(array.type));
}

Matrix MapFile::map(std::size_t t) const {
  Matrix matrix{positions(), positions(), file_.floats(map_name(layer_, head_), t, 1)};
  for (std::size_t i = 0; i < matrix.values.size(); ++i)
    if (!(matrix.values[i] >= 0 && matrix.values[i] <= 1.01F))
      throw Error("{}: {} is {} at step {}, query {}, key {}; attention lies between 0 and 1", where_,
                  map_name(layer_, head_), matrix.values[i], t, i / positions(), i % positions());
  return matrix;
}

std::vector<float> column_sums(const Matrix& matrix) {
  std::vector<float> sums(matrix.columns, 0);
  for (std::size_t row = 0; row < matrix.rows; ++row)
    for (std::size_t column = 0; column < matrix.columns; ++column) sums[column] += matrix.at(row, column);
  return sums;
}

std::string maps_refusal(const PlotRun& run, const PlotOptions& options) {
  if (run.rows)
    return fmt::format("{} is a run of an autoregressive model, which records last rows and no whole maps",
                       run.recorded.folder.string());
  const std::string where = sample_path(run.recorded.folder, run.sample).string();
  const NpzFile file(where);
  if (recorded_maps(file, run.choice).empty()) {
    const bool named = !options.layers.ranges.empty() || !options.heads.ranges.empty();
    return fmt::format("{} has no array map_L{{layer}}_H{{head}}{}; record the run with --maps LAYER:HEAD",
                       where, named ? " of the layers and heads asked for" : "");
  }
  return "";
}

Figure maps_figure(const FigureInput& input) {
  const MapFile maps(input.run);
  const auto last = static_cast<std::int64_t>(maps.steps()) - 1;
  if (input.options.step && (*input.options.step < 0 || *input.options.step > last))
    throw UsageError("--step {}: sample {} of {} has the steps 0 to {}", *input.options.step,
                     input.run.sample, input.run.recorded.folder.string(), last);
  const std::size_t after =
      input.options.step ? static_cast<std::size_t>(*input.options.step) : farthest_jump(maps);
  const std::size_t before = after == 0 ? 0 : after - 1;
  Figure figure = begin_figure(input, "maps", "attention before and after a step");
  figure.note = fmt::format(
      "layer {}, head {}, sample {}, {}; rows are queries and add up to 1", maps.layer(), maps.head(),
      input.run.sample,
      input.options.step ? "step as asked for" : "the step at which the largest column jumps farthest");
  figure.colour = "attention";
  figure.square = true;
  figure.columns = {"query", "key", "value"};
  figure.aggregation["quantity"] = "softmax probability of the key for the query, before any key was removed";
  figure.aggregation["value"] = "none: one layer, one head; drawn cells: maximum of their block";
  FigurePart& part = figure.parts[0];
  part.about["sample"] = input.run.sample;
  part.about["layers"] = {maps.layer()};
  part.about["heads"] = {maps.head()};
  part.about["steps"] = {before, after};
  for (const std::size_t t : {before, after}) part.panels.push_back(map_panel(input, maps, t));
  figure.height = 62;
  return figure;
}

}  // namespace sinkscope
