// What an intervention does to a prediction in one and the same state: the forward pass that generates, with
// it, against a second one of the same input without.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinkscope {

/// p and p' are softmaxes in float64, without and with the intervention; x = argmax p, x' = argmax p' (ties:
/// lower id).
struct PredictionEffect {
  double kl = 0;           ///< sum_v p_v ln(p_v / p'_v), nats; terms of p_v = 0 are 0
  bool agrees = true;      ///< x = x'
  double confidence = 0;   ///< p'_x' - p_x
  double probability = 0;  ///< p'_x - p_x
};

/// Of two rows of logits [V]; -infinity where an id is forbidden. Throws Error when another one is not
/// finite.
PredictionEffect compare_predictions(std::span<const float> plain, std::span<const float> changed);

/// Of one step of a sample, [S] each; NaN, and 255 in `agrees`, where nothing was predicted.
struct StepEffect {
  std::vector<float> kl;
  std::vector<std::uint8_t> agrees;
  std::vector<float> confidence;
  std::vector<float> probability;
  /// Mean over all layers and heads of sum_(j changed) A_ij, raw, i the position whose row of the model
  /// predicts this one.
  std::vector<float> removed_mass;
};

}  // namespace sinkscope
