#include "draw/training_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sinkscope {
namespace {

constexpr std::size_t most_curves = 7;  // that can be told apart

struct Wanted {
  std::string name, title;
};

Figure curves_figure(const RecordedTraining& run, const char* name, const char* title,
                     const std::vector<Wanted>& wanted, const char* y, bool logarithmic) {
  Figure figure;
  figure.name = name;
  figure.title = title;
  figure.columns = {"curve", "step", "value"};
  figure.overlays = true;
  FigurePart part;
  part.run = run.label;
  part.about = {{"run", run.folder.string()}, {"kind", "training"}};
  Panel panel;
  double last = 1, lowest = HUGE_VAL, highest = 0;
  for (const Wanted& one : wanted) {
    const auto found = run.curves.find(one.name);
    if (found == run.curves.end()) continue;
    Curve curve{one.title, {}, CurveStyle::line, curve_colour(panel.curves.size())};
    for (const auto& [step, value] : found->second) {
      part.rows.push_back({one.name, step, value});
      const bool drawn = std::isfinite(value) && (!logarithmic || value > 0);
      curve.points.emplace_back(step, drawn ? value : std::nan(""));
      last = std::max(last, step);
      if (!drawn) continue;
      lowest = std::min(lowest, value);
      highest = std::max(highest, value);
    }
    if (curve.points.size() == 1) curve.style = CurveStyle::points;
    panel.curves.push_back(std::move(curve));
  }
  if (!(highest > 0)) lowest = 0.5, highest = 1;
  panel.x = {"training step", 0, last};
  panel.x.whole = true;
  panel.y = logarithmic ? Axis{y, 0.8 * lowest, 1.25 * highest, true} : Axis{y, 0, 1.06 * highest};
  // Less than a power of ten has no round ticks on a logarithmic axis.
  if (logarithmic && highest / lowest < 8) panel.y = {y, 0, 1.06 * highest};
  part.panels.push_back(std::move(panel));
  figure.parts.push_back(std::move(part));
  return figure;
}

}  // namespace

Figure losses_figure(const RecordedTraining& run) {
  Figure figure =
      curves_figure(run, "losses", "losses",
                    {{"loss", "what is minimised"}, {"token_loss", "of a predicted token"}}, "nats", true);
  figure.note = "means over the steps since the last line of metrics.jsonl";
  figure.aggregation["value"] = "as training logged it: docs/training.md";
  return figure;
}

Figure emergence_figure(const RecordedTraining& run) {
  std::vector<Wanted> wanted;
  const bool by_position = run.curves.contains("sink_rates/0");
  if (by_position)
    for (int k = 0; k < 4; ++k)
      wanted.push_back({fmt::format("sink_rates/{}", k), fmt::format("Sink_{}", k)});
  else
    wanted.push_back({"sink_rate", "maps with a sink"});
  wanted.push_back({"alpha_first", "attention to the first position"});
  wanted.push_back({"slot_rate", "maps whose slot is a sink"});
  Figure figure = curves_figure(run, "emergence", "sinks in training", wanted, "share", false);
  figure.note =
      by_position ? "Sink_k: share of (text, layer, head) whose key k draws more than 0.3 of the attention "
                    "that can see it"
                  : "maps with a sink: share of (text, layer, head) with a column sum above the mean of the "
                    "others + 3";
  figure.aggregation["value"] = "means over the texts of the probe, layers and heads: docs/training.md";
  return figure;
}

Figure massive_figure(const RecordedTraining& run) {
  std::vector<int> layers;
  while (run.curves.contains(fmt::format("massive_ratio/{}", layers.size())))
    layers.push_back(static_cast<int>(layers.size()));
  std::vector<Wanted> wanted;
  const std::size_t count = std::min(layers.size(), most_curves);
  for (std::size_t i = 0; i < count; ++i) {
    const int layer = layers[count == 1 ? 0 : i * (layers.size() - 1) / (count - 1)];
    wanted.push_back({fmt::format("massive_ratio/{}", layer), fmt::format("layer {}", layer)});
  }
  Figure figure =
      curves_figure(run, "massive", "massive activations in training", wanted, "norm ratio", true);
  figure.note = "norm of the leading position entering the layer / mean of the others";
  figure.aggregation["value"] = "means over the texts of the probe: docs/training.md";
  return figure;
}

std::span<const TrainingFigureKind> training_figure_kinds() {
  static constexpr std::array kinds{
      TrainingFigureKind{"losses", "losses against the training step", losses_figure},
      TrainingFigureKind{"emergence", "sinks against the training step", emergence_figure},
      TrainingFigureKind{"massive", "massive activations against the training step", massive_figure}};
  return kinds;
}

}  // namespace sinkscope
