#include "measure/sums.h"

#include <sinkscope/error.h>

#include <algorithm>

namespace sinkscope {
namespace {

template <typename Value>
void add_each(std::vector<Value>& sums, const std::vector<Value>& other) {
  sums.resize(other.size());
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += other[i];
}

void add_each(std::vector<Agreement>& sums, const std::vector<Agreement>& other) {
  sums.resize(other.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].sum += other[i].sum;
    sums[i].pairs += other[i].pairs;
  }
}

void add_by_layer(Sums& sums, const Sums& other) {
  add_each(sums.share.layer_sinks, other.share.layer_sinks);
  add_each(sums.share.top_sink, other.share.top_sink);
  add_each(sums.share.top_steps, other.share.top_steps);
  add_each(sums.share.largest_column, other.share.largest_column);
  add_each(sums.overlap.sink_mass, other.overlap.sink_mass);
  add_each(sums.overlap.mass, other.overlap.mass);
  add_each(sums.overlap.layers, other.overlap.layers);
  add_each(sums.overlap.heads, other.overlap.heads);
}

void add_counts(ShareSums& sums, const ShareSums& other) {
  sums.cells += other.cells;
  sums.sinks += other.sinks;
  sums.membership += other.membership;
  sums.margins.add(other.margins);
  sums.steps += other.steps;
}

}  // namespace

void validate_measure(const MeasureOptions& options) {
  validate_detection(options.detection);
  if (!(options.wanted_share > 0 && options.wanted_share < 1))
    throw UsageError("--calibrate takes a share between 0 and 1, both excluded, not {}",
                     options.wanted_share);
}

void add_sample(Sums& sums, const SampleSteps& sample, const MeasureOptions& options,
                const SplitSink& place) {
  const SampleShape& shape = sample.shape();
  LifeTracker lives(shape, sums.tracks);
  DriftTracker drift(shape);
  Step step;
  for (std::size_t t = 0; t < shape.steps; ++t) {
    sample.read(t, step);
    find_sinks(step, options.detection);
    add_step(sums.share, step, options.detection);
    lives.add_step(step);
    drift.add_step(step);
    add_step(sums.splits, step, options.detection, place);
    add_step(sums.tokens, step);
    add_step(sums.overlap, step);
    if (sample.has_effect()) add_step(sums.effect, sample.effect(t));
  }
  lives.finish();
  drift.finish(sums.drift);
  ++sums.samples;
  sums.layers = shape.layers;
  sums.heads = shape.heads;
  sums.least_positions = std::min(sums.least_positions, shape.positions);
  sums.most_positions = std::max(sums.most_positions, shape.positions);
}

void add(Sums& sums, const Sums& other, bool same_tokens) {
  const bool first = sums.samples == 0;
  sums.same_shape = sums.same_shape && other.same_shape &&
                    (first || (sums.layers == other.layers && sums.heads == other.heads));
  sums.same_tokens = sums.same_tokens && other.same_tokens && (first || same_tokens);
  sums.layers = sums.same_shape ? other.layers : 0;
  sums.heads = sums.same_shape ? other.heads : 0;
  sums.samples += other.samples;
  sums.least_positions = std::min(sums.least_positions, other.least_positions);
  sums.most_positions = std::max(sums.most_positions, other.most_positions);
  add_counts(sums.share, other.share);
  if (sums.same_shape) add_by_layer(sums, other);
  add(sums.tracks, other.tracks);
  add(sums.drift, other.drift);
  add(sums.splits, other.splits);
  add(sums.effect, other.effect);
  add(sums.tokens, other.tokens, sums.same_tokens);
}

}  // namespace sinkscope
