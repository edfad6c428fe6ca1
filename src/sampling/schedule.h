// How many positions each step of a block opens.
#pragma once

#include <cstdint>
#include <vector>

namespace sinkscope {

/// `masks` positions over `steps` steps: floor(masks / steps) each, the first (masks mod steps) steps one
/// more. 10 over 4: 3, 3, 2, 2. Steps of zero are legal.
std::vector<std::int64_t> transfer_schedule(std::int64_t masks, std::int64_t steps);

/// Dream's: torch.linspace(1, eps, steps + 1) in float32.
std::vector<float> time_steps(std::int64_t steps, double eps);

/// The share of the masks that step i of time_steps() opens, 1 - t[i + 1] / t[i] in float32; 1 in the last
/// step.
float opened_share(const std::vector<float>& times, std::int64_t step);

/// int(masks * share) in float32, as Dream's code truncates it.
std::int64_t opened_masks(std::int64_t masks, float share);

/// The multiples of `unit` next to `value`, at least `unit`: one or two.
std::vector<std::int64_t> nearest_multiples(std::int64_t value, std::int64_t unit);

}  // namespace sinkscope
