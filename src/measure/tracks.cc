#include "measure/tracks.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace sinkscope {

double jaccard(std::span<const int> a, std::span<const int> b) {
  std::vector<int> common;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(common));
  const auto shared = static_cast<double>(common.size());
  return shared / (static_cast<double>(a.size() + b.size()) - shared);
}

void add(TrackSums& sums, const TrackSums& other) {
  sums.births += other.births;
  sums.deaths += other.deaths;
  for (const auto& [length, count] : other.lifetimes) {
    sums.lifetimes[length].lives += count.lives;
    sums.lifetimes[length].touching += count.touching;
  }
  for (const auto& [distance, count] : other.jumps) sums.jumps[distance] += count;
  sums.ever += other.ever;
  sums.stay += other.stay;
  sums.jaccard += other.jaccard;
  sums.jaccard_pairs += other.jaccard_pairs;
}

LifeTracker::LifeTracker(const SampleShape& shape, TrackSums& sums)
    : shape_(shape),
      sums_(sums),
      begin_(shape.maps() * shape.positions, -1),
      alive_(shape.maps() * shape.positions, 0),
      previous_(shape.maps()),
      previous_largest_(shape.maps(), -1) {}

void LifeTracker::add_step(const Step& step) {
  for (std::size_t map = 0; map < shape_.maps(); ++map) follow_map(step, map);
  previous_ = step.sinks;
  previous_largest_ = step.largest;
}

void LifeTracker::follow_map(const Step& step, std::size_t map) {
  const std::vector<int>& now = step.sinks[map];
  const std::vector<int>& before = previous_[map];
  const std::size_t first = map * shape_.positions;
  for (const int key : now) {
    const std::size_t cell = first + static_cast<std::size_t>(key);
    ++alive_[cell];
    if (begin_[cell] >= 0) continue;
    begin_[cell] = static_cast<std::int32_t>(step.number);
    sums_.births += step.number > 0 ? 1 : 0;
  }
  for (const int key : before)
    if (!std::binary_search(now.begin(), now.end(), key)) {
      ++sums_.deaths;
      end_life(first + static_cast<std::size_t>(key), step.number);
    }
  if (step.number == 0) return;
  if (!now.empty() || !before.empty()) {
    sums_.jaccard += jaccard(now, before);
    ++sums_.jaccard_pairs;
  }
  const int from = previous_largest_[map], to = step.largest[map];
  if (from >= 0 && to >= 0 && from != to) ++sums_.jumps[std::abs(to - from)];
}

void LifeTracker::end_life(std::size_t cell, std::size_t end) {
  const auto begin = static_cast<std::size_t>(begin_[cell]);
  LifeCount& count = sums_.lifetimes[static_cast<std::int64_t>(end - begin)];
  ++count.lives;
  count.touching += begin == 0 || end == shape_.steps ? 1 : 0;
  begin_[cell] = -1;
}

void LifeTracker::finish() {
  for (std::size_t cell = 0; cell < begin_.size(); ++cell) {
    if (begin_[cell] >= 0) end_life(cell, shape_.steps);
    if (alive_[cell] == 0) continue;
    ++sums_.ever;
    sums_.stay += 10 * static_cast<std::size_t>(alive_[cell]) >= 9 * shape_.steps ? 1 : 0;
  }
}

}  // namespace sinkscope
