#include "draw/figures.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "measure/result.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

std::string numbers_text(const char* what, const std::vector<std::size_t>& numbers, std::int64_t all) {
  if (numbers.size() == 1) return fmt::format("{} {}", what, numbers[0]);
  if (static_cast<std::int64_t>(numbers.size()) == all) return fmt::format("{} {}s", all, what);
  return fmt::format("{}s {}", what, fmt::join(numbers, ","));
}

std::string threshold_text(const DetectionOptions& options) {
  switch (options.rule) {
    case SinkRule::paper:
      return fmt::format("C > mean of the others + {:g}", options.epsilon);
    case SinkRule::zscore:
      return fmt::format("C > mean + {:g} standard deviations", options.z);
    case SinkRule::visible:
      return fmt::format("mean attention > {:g}", options.epsilon);
    case SinkRule::topk:
      return fmt::format("the {} largest C", options.top_k);
    default:
      return fmt::format("sigmoid({:g} (C - mean - {:g} standard deviations)) > 1/2", options.steepness,
                         options.z);
  }
}

}  // namespace

std::string value_title(const FigureInput& input) {
  const char* what = input.run.rows ? "last row × keys" : "C";
  switch (input.options.detection.scale) {
    case SinkScale::mean:
      return input.run.rows ? "last row" : "C / S";
    case SinkScale::percent:
      return input.run.rows ? "last row, percent" : "100 C / S";
    default:
      return fmt::format("{} (uniform = 1)", what);
  }
}

std::string maps_text(const FigureInput& input) {
  const MapChoice& choice = input.run.choice;
  const RunModel& model = input.run.recorded.info.model;
  const std::string layers = numbers_text("layer", choice.layers, model.layers);
  const std::string heads = numbers_text("head", choice.heads, model.heads);
  if (choice.maps() == 1) return layers + ", " + heads;
  return fmt::format("{} over {} × {}", name_of(input.options.aggregate), layers, heads);
}

std::string samples_text(const FigureInput& input) {
  if (input.run.samples.size() == 1) return fmt::format("sample {}", input.run.samples[0]);
  return fmt::format("{} samples", input.run.samples.size());
}

std::string rule_text(const DetectionOptions& options) {
  std::string text = "sink: " + threshold_text(options);
  if (options.scale != SinkScale::sum) text += fmt::format(", scale {}", name_of(options.scale));
  return text;
}

std::string token_text(const FigureInput& input, std::int32_t id) {
  if (id < 0 || !input.callbacks.token_text) return "";
  return input.callbacks.token_text(input.run.recorded.info, id).value_or("");
}

Figure begin_figure(const FigureInput& input, std::string_view name, std::string_view title) {
  const PlotRun& run = input.run;
  Figure figure;
  figure.name = name;
  figure.title = title;
  FigurePart part;
  part.run = run.label;
  part.about = {{"run", run.recorded.folder.string()},
                {"model", run.recorded.info.model.name},
                {"kind", run.rows ? "autoregressive" : "diffusion"},
                {"intervention", intervention_json(run.recorded.info)},
                {"layers", run.choice.layers},
                {"heads", run.choice.heads}};
  figure.parts.push_back(std::move(part));
  figure.aggregation = rule_of(input.options.detection);
  figure.aggregation["quantity"] =
      run.rows ? "attention of the last query to each key, times the number of keys it sees"
               : "C: column sum of the attention map over all queries, before any key was removed";
  return figure;
}

std::span<const FigureKind> figure_kinds() {
  constexpr Needs of_sample{.view = true}, shares{.share = true}, tracks{.tracks = true},
      tokens{.tokens = true};
  static constexpr std::array kinds{
      FigureKind{"heatmap", "position x step: the attention a position draws, and where it is unmasked",
                 of_sample, heat_map_figure, nullptr},
      FigureKind{"tracks", "position of the largest sink against the step", of_sample, tracks_figure,
                 nullptr},
      FigureKind{"maps", "whole attention maps before and after a step (run --maps)", Needs{}, maps_figure,
                 maps_refusal},
      FigureKind{"layer-head", "layer x head: the largest sink, mean over the steps", shares,
                 layer_head_figure, nullptr},
      FigureKind{"histogram", "how many cells draw how much attention", Needs{.histogram = true},
                 histogram_figure, nullptr},
      FigureKind{"epsilon", "share of cells that are no sinks against the threshold", shares, epsilon_figure,
                 epsilon_refusal},
      FigureKind{"layers", "number of sinks against depth", shares, layers_figure, nullptr},
      FigureKind{"absorption", "share of the attention that sinks take, against depth",
                 Needs{.overlap = true}, absorption_figure, nullptr},
      FigureKind{"lifetimes", "how many steps sinks last", tracks, lifetimes_figure, nullptr},
      FigureKind{"jumps", "how far the largest sink moves from step to step", tracks, jumps_figure, nullptr},
      FigureKind{"tokens", "which tokens are sinks, against their share of all positions", tokens,
                 tokens_figure, nullptr},
      FigureKind{"positions", "where in the row sinks stand", tokens, positions_figure, nullptr}};
  return kinds;
}

}  // namespace sinkscope
