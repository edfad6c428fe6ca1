// How many positions each step of a block opens.
#pragma once

#include <cstdint>
#include <vector>

namespace sinkscope {

/// `masks` positions over `steps` steps: floor(masks / steps) each, the first (masks mod steps) steps one
/// more. 10 over 4: 3, 3, 2, 2. Steps of zero are legal.
std::vector<std::int64_t> transfer_schedule(std::int64_t masks, std::int64_t steps);

/// The multiples of `unit` next to `value`, at least `unit`: one or two.
std::vector<std::int64_t> nearest_multiples(std::int64_t value, std::int64_t unit);

}  // namespace sinkscope
