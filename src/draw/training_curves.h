// Losses and sinks of a training run against its steps.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace sinkscope {

/// The columns of a run's metrics.jsonl by name, each a list of (step, value): "loss", "token_loss",
/// "gradient_norm", "learning_rate", "tokens_per_second", and of probes "sink_rate", "alpha_first", ...,
/// "massive_ratio/3" of layer 3, "sink_rates/0" of position 0.
using TrainingCurves = std::map<std::string, std::vector<std::pair<double, double>>>;

/// Throws Error naming the file and the line that is not what training writes, or when there is nothing in
/// it.
TrainingCurves read_training_curves(const std::filesystem::path& metrics);

/// Writes FOLDER/training.csv (curve,step,value) and FOLDER/training.png: losses, gradient norm, sinks,
/// massive activations. Returns the picture's path. Throws as run_gnuplot().
std::filesystem::path plot_training(const std::filesystem::path& metrics,
                                    const std::filesystem::path& folder);

}  // namespace sinkscope
