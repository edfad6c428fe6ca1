// What an intervention did to each prediction in the same state, as `run --effect` recorded it, in sums.
#pragma once

#include <sinkscope/npz.h>

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

/// One prediction of one step (docs/methods.md).
struct RecordedEffect {
  double kl = 0;
  bool agrees = true;
  double confidence = 0;
  double probability = 0;
  double removed_mass = 0;
};

/// Whether the file has the five arrays, of this shape: [T,S], of autoregressive models [T]. Throws Error
/// naming the file (`where`) and the array where it has some of them, or of another type or shape.
bool has_effect(const NpzFile& file, const std::string& where, const std::vector<std::int64_t>& shape);

/// The predictions of step t, by position. Throws Error naming the array and the place of a number that
/// cannot be: not finite where the others are, a negative divergence, a share outside 0 to 1.
std::vector<RecordedEffect> read_effect(const NpzFile& file, const std::string& where, std::size_t t);

/// Sums over predictions.
struct EffectPart {
  std::uint64_t predictions = 0;
  std::uint64_t agreeing = 0;
  double kl = 0, confidence = 0, probability = 0, removed_mass = 0;

  void add(const RecordedEffect& effect);
  void add(const EffectPart& other);
};

/// A correlation within steps: the mean over steps, each weighing as many as it has predictions.
struct StepCorrelation {
  double weighted = 0;
  std::uint64_t predictions = 0;
  std::uint64_t steps = 0;
};

inline constexpr std::size_t effect_quarters = 4;

/// Over the steps at which keys were removed: those with a removed_mass above 0.
struct EffectSums {
  bool recorded = false;  // in one sample at least
  std::uint64_t steps = 0;
  EffectPart all;
  /// The predictions of each step in the order of their removed_mass (ties: lower position), cut in four as
  /// evenly as can be: quarter floor(4 r / n) of place r of n. The first attended least to what was removed.
  std::array<EffectPart, effect_quarters> quarters;
  /// Of removed_mass with the changes of confidence and probability: Spearman's rho and Kendall's tau_b.
  StepCorrelation confidence_rho, confidence_tau, probability_rho, probability_tau;
};

/// Adds the predictions of one step.
void add_step(EffectSums& sums, std::span<const RecordedEffect> predictions);
/// Pools.
void add(EffectSums& sums, const EffectSums& other);

/// The numbers of `effect`, and of each of its quarters, in effect_json().
inline constexpr std::array<const char*, 6> effect_numbers{
    "predictions",      "mean_kl", "agreement", "mean_confidence_change", "mean_probability_change",
    "mean_removed_mass"};

/// Null where nothing was recorded; numbers without a denominator are null.
nlohmann::ordered_json effect_json(const EffectSums& sums);

}  // namespace sinkscope
