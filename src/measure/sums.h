// All measurements of sinks.md 5.1 to 5.5, and the effect of an intervention, as sums, over a run or several.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "measure/drift.h"
#include "measure/effect.h"
#include "measure/overlap.h"
#include "measure/sample_steps.h"
#include "measure/share.h"
#include "measure/splits.h"
#include "measure/tokens.h"
#include "measure/tracks.h"

namespace sinkscope {

struct MeasureOptions {
  DetectionOptions detection;
  double wanted_share = 0.04;  ///< of all cells: what calibration looks for; above 0, below 1
};

/// Throws UsageError naming the option and the range that is right.
void validate_measure(const MeasureOptions& options);

struct Sums {
  explicit Sums(const DetectionOptions& options) : share(options) {}

  std::uint64_t samples = 0;
  std::size_t least_positions = std::numeric_limits<std::size_t>::max();
  std::size_t most_positions = 0;
  /// Of the model: 0 where runs of models of several shapes are pooled, whose layers and heads are then left
  /// out.
  std::size_t layers = 0, heads = 0;
  bool same_shape = true;
  bool same_tokens = true;  ///< token ids mean the same in all of it
  ShareSums share;
  TrackSums tracks;
  DriftSums drift;
  SplitSums splits;
  TokenSums tokens;
  OverlapSums overlap;
  EffectSums effect;
};

/// Adds one sample, step by step. `place` names its run and itself.
void add_sample(Sums& sums, const SampleSteps& sample, const MeasureOptions& options, const SplitSink& place);

/// Pools. same_tokens: whether both count tokens of the same tokenizer.
void add(Sums& sums, const Sums& other, bool same_tokens);

}  // namespace sinkscope
