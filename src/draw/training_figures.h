// Figures of training runs: what metrics.jsonl holds against the training step.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "draw/figure.h"
#include "draw/training_curves.h"

namespace sinkscope {

struct TrainingRun {
  std::string label;
  std::filesystem::path folder;
  TrainingCurves curves;
};

/// Losses, sinks, massive activations.
Figure losses_figure(const TrainingRun& run);
Figure emergence_figure(const TrainingRun& run);
Figure massive_figure(const TrainingRun& run);

struct TrainingFigureKind {
  std::string_view name;
  std::string_view what;
  Figure (*make)(const TrainingRun& run);
};

std::span<const TrainingFigureKind> training_figure_kinds();

}  // namespace sinkscope
