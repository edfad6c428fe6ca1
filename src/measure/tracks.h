// Sinks over the steps of a sample: lives, jumps, how much stays (sinks.md 5.2).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "measure/step.h"

namespace sinkscope {

/// Lives of one length: a life is a maximal run of consecutive steps at which key j is a sink of (l,h).
struct LifeCount {
  std::uint64_t lives = 0;
  std::uint64_t touching = 0;  ///< of these, lives that touch the first or the last step: cut off, perhaps
};

/// Counts over all samples.
struct TrackSums {
  std::uint64_t births = 0;                     ///< lives that begin at t > 0
  std::uint64_t deaths = 0;                     ///< lives that end before T-1
  std::map<std::int64_t, LifeCount> lifetimes;  ///< by length in steps
  std::map<std::int64_t, std::uint64_t> jumps;  ///< by distance in positions
  std::uint64_t ever = 0;                       ///< (l,h,j) of a sample that are sinks at some step
  std::uint64_t stay = 0;                       ///< of these, at 90 % of the steps or more
  double jaccard = 0;  ///< sum over pairs of neighbouring steps with a non-empty union
  std::uint64_t jaccard_pairs = 0;
};

void add(TrackSums& sums, const TrackSums& other);

/// |a and b| / |a or b| of two ascending sets that are not both empty.
double jaccard(std::span<const int> a, std::span<const int> b);

/// Follows one sample. Memory: eight bytes for every (l,h,j).
class LifeTracker {
 public:
  LifeTracker(const SampleShape& shape, TrackSums& sums);

  /// Steps in order.
  void add_step(const Step& step);
  /// After the last one.
  void finish();

 private:
  void follow_map(const Step& step, std::size_t map);
  void end_life(std::size_t cell, std::size_t end);

  SampleShape shape_;
  TrackSums& sums_;
  std::vector<std::int32_t> begin_;         // [L,H,S] the step at which the current life began, -1
  std::vector<std::int32_t> alive_;         // [L,H,S] steps as a sink
  std::vector<std::vector<int>> previous_;  // [L H] sinks of the step before
  std::vector<int> previous_largest_;       // [L H]
};

}  // namespace sinkscope
