#include "measure/tokens.h"

#include <algorithm>

namespace sinkscope {
namespace {

// [S] distance to the nearest masked position, -1 where there is none.
std::vector<std::int64_t> mask_distances(const Step& step) {
  const auto count = static_cast<std::int64_t>(step.shape.positions);
  std::vector<std::int64_t> distance(step.shape.positions, -1);
  const auto sweep = [&](std::int64_t first, std::int64_t direction) {
    std::int64_t last = -1;  // masked position met last
    for (std::int64_t j = first; j >= 0 && j < count; j += direction) {
      if (step.status[j] == TokenStatus::masked) last = j;
      if (last >= 0 && (distance[j] < 0 || std::abs(j - last) < distance[j]))
        distance[j] = std::abs(j - last);
    }
  };
  sweep(0, 1);
  sweep(count - 1, -1);
  return distance;
}

void add_count(TokenCount& count, const TokenCount& more) {
  count.sinks += more.sinks;
  count.positions += more.positions;
}

}  // namespace

void add_step(TokenSums& sums, const Step& step) {
  std::vector<std::uint64_t> sinks_at(step.shape.positions, 0);
  for (const std::vector<int>& sinks : step.sinks)
    for (const int key : sinks) ++sinks_at[key];
  const std::vector<std::int64_t> distances = mask_distances(step);
  const auto positions = static_cast<double>(step.shape.positions);
  for (std::size_t j = 0; j < step.shape.positions; ++j) {
    const TokenCount here{sinks_at[j], 1};
    add_count(sums.all, here);
    add_count(sums.by_id[step.ids[j]], here);
    add_count(sums.by_status[static_cast<std::size_t>(step.status[j])], here);
    add_count(sums.by_place[j * place_count / step.shape.positions], here);
    sums.relative_position += static_cast<double>(here.sinks) * (static_cast<double>(j) + 0.5) / positions;
    add_count(distances[j] < 0 ? sums.without_masks : sums.by_distance[distances[j]], here);
  }
}

void add(TokenSums& sums, const TokenSums& other, bool with_ids) {
  add_count(sums.all, other.all);
  if (with_ids)
    for (const auto& [id, count] : other.by_id) add_count(sums.by_id[id], count);
  for (std::size_t i = 0; i < status_count; ++i) add_count(sums.by_status[i], other.by_status[i]);
  for (std::size_t i = 0; i < place_count; ++i) add_count(sums.by_place[i], other.by_place[i]);
  sums.relative_position += other.relative_position;
  for (const auto& [distance, count] : other.by_distance) add_count(sums.by_distance[distance], count);
  add_count(sums.without_masks, other.without_masks);
}

}  // namespace sinkscope
