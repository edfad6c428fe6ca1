// Two recorded samples of the same prompt, side by side (sinks.md 5.7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "measure/trajectory.h"

namespace sinkscope {

/// Confidences of positions that were candidates in both runs at the same step: b minus a.
struct ConfidenceChange {
  std::uint64_t candidates = 0;  ///< (step, position) pairs
  double sum_a = 0;
  double sum_b = 0;
  double absolute = 0;  ///< sum of |b - a|
  double largest = 0;   ///< of |b - a|

  void add(double a, double b);
  void add(const ConfidenceChange& other);
};

struct SamplePair {
  std::size_t steps_a = 0, steps_b = 0;
  std::size_t tokens_a = 0, tokens_b = 0;  ///< generated positions; autoregressive: generated tokens
  std::size_t equal = 0;                   ///< generated positions with the same final id
  /// Place of the first generated position with different ids, counted from the prompt's end. Where one
  /// sequence is longer, its further tokens differ.
  std::optional<std::size_t> first_difference;

  // Diffusion models only.
  std::optional<std::size_t> parts_at;  ///< first t at which states[t] differ
  std::optional<double> kendall_tau;    ///< of the steps at which the generated positions were unmasked
  /// Absent where one run recorded no confidence.
  std::optional<ConfidenceChange> before_parting, all_steps;
  /// The part of before_parting at steps at which b removed keys; absent where b has no `masked_keys`.
  std::optional<ConfidenceChange> keys_masked;
  std::size_t steps_masked = 0;   ///< these steps
  std::uint64_t masked_keys = 0;  ///< (layer, head, key) removed by b at these steps

  EffectSums effect_a, effect_b;  ///< what each run recorded of its intervention

  std::size_t tokens() const { return tokens_a > tokens_b ? tokens_a : tokens_b; }
  bool outputs_equal() const { return !first_difference; }
};

/// `mask_id`: none for autoregressive models. Throws Error where the samples have other lengths. The prompts
/// are the caller's to compare.
SamplePair compare_samples(const Trajectory& a, const Trajectory& b, std::optional<std::int32_t> mask_id);

}  // namespace sinkscope
