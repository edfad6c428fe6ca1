// Figures of training runs: what metrics.jsonl holds against the training step.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "draw/figure.h"
#include "draw/training_curves.h"

namespace sinkscope {

struct RecordedTraining {
  std::string label;
  std::filesystem::path folder;
  TrainingCurves curves;
};

/// Losses, sinks, massive activations.
Figure losses_figure(const RecordedTraining& run);
Figure emergence_figure(const RecordedTraining& run);
Figure massive_figure(const RecordedTraining& run);

struct TrainingFigureKind {
  std::string_view name;
  std::string_view what;
  Figure (*make)(const RecordedTraining& run);
};

std::span<const TrainingFigureKind> training_figure_kinds();

}  // namespace sinkscope
