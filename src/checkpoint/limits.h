// Bounds on what a config.json may say: far above any model, low enough that no product of two overflows and
// nothing enormous is built from a number alone.
#pragma once

#include <cstdint>
#include <limits>

namespace sinkscope {

inline constexpr std::int64_t largest_layers = 4096;
inline constexpr std::int64_t largest_heads = 65536;
inline constexpr std::int64_t largest_experts = 4096;
inline constexpr std::int64_t largest_width = std::int64_t{1} << 20;
inline constexpr std::int64_t largest_mlp_width = std::int64_t{1} << 24;
inline constexpr std::int64_t largest_positions = std::int64_t{1} << 30;
inline constexpr std::int64_t largest_id_count = std::numeric_limits<std::int32_t>::max();
inline constexpr double largest_rope_theta = 1e12;

}  // namespace sinkscope
