#include "sampling/schedule.h"

#include <algorithm>

namespace sinkscope {

std::vector<std::int64_t> transfer_schedule(std::int64_t masks, std::int64_t steps) {
  std::vector<std::int64_t> schedule(static_cast<std::size_t>(steps), masks / steps);
  for (std::int64_t i = 0; i < masks % steps; ++i) ++schedule[static_cast<std::size_t>(i)];
  return schedule;
}

std::vector<std::int64_t> nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  if (below == value || below == 0) return {std::max(below, unit)};
  return {below, below + unit};
}

}  // namespace sinkscope
