#include "sampling/schedule.h"

#include <algorithm>

namespace sinkscope {

std::vector<std::int64_t> transfer_schedule(std::int64_t masks, std::int64_t steps) {
  std::vector<std::int64_t> schedule(static_cast<std::size_t>(steps), masks / steps);
  for (std::int64_t i = 0; i < masks % steps; ++i) ++schedule[static_cast<std::size_t>(i)];
  return schedule;
}

std::vector<float> time_steps(std::int64_t steps, double eps) {
  // torch counts from both ends so that both are met exactly.
  const auto end = static_cast<float>(eps);
  const float step = (end - 1.0F) / static_cast<float>(steps);
  std::vector<float> times;
  for (std::int64_t i = 0; i <= steps; ++i)
    times.push_back(i < (steps + 1) / 2 ? 1.0F + step * static_cast<float>(i)
                                        : end - step * static_cast<float>(steps - i));
  return times;
}

float opened_share(const std::vector<float>& times, std::int64_t step) {
  const auto i = static_cast<std::size_t>(step);
  return i + 2 < times.size() ? 1.0F - times[i + 1] / times[i] : 1.0F;
}

std::int64_t opened_masks(std::int64_t masks, float share) {
  return static_cast<std::int64_t>(static_cast<float>(masks) * share);
}

std::vector<std::int64_t> nearest_multiples(std::int64_t value, std::int64_t unit) {
  const std::int64_t below = value / unit * unit;
  if (below == value || below == 0) return {std::max(below, unit)};
  return {below, below + unit};
}

}  // namespace sinkscope
