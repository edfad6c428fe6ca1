// One forward of a sample with its sinks: what every measurement looks at.
//
// T forwards, S positions, L layers, H query heads. A map is one (step, layer, head); maps of a step are
// counted l * H + h.
#pragma once

#include <sinkscope/sinks.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sinkscope {

/// What a token is at a forward, by its input id; also the class of a query. In the order of `column_sum`.
enum class TokenStatus : std::uint8_t { prompt, decoded, masked };
inline constexpr auto& status_names = position_class_names;
constexpr std::size_t status_count = status_names.size();

struct SampleShape {
  std::size_t steps = 0;      ///< T
  std::size_t positions = 0;  ///< S
  std::size_t layers = 0;     ///< L
  std::size_t heads = 0;      ///< H

  std::size_t maps() const { return layers * heads; }
};

struct Step {
  SampleShape shape;
  std::size_t number = 0;                         ///< t
  std::vector<std::int32_t> ids;                  ///< [S] input ids
  std::vector<TokenStatus> status;                ///< [S]
  std::array<double, status_count> queries = {};  ///< queries of each class in the sums
  std::vector<float> by_class;                    ///< [3,L,H,S] column sums
  std::vector<float> columns;                     ///< [L,H,S] C, the classes added up
  std::vector<std::vector<int>> sinks;            ///< [L H] of each map, ascending
  std::vector<int> largest;  ///< [L H] the sink with the largest C, -1 where there is none

  std::span<const float> columns_of(std::size_t map) const {
    return std::span(columns).subspan(map * shape.positions, shape.positions);
  }
  std::span<const float> columns_of(TokenStatus query_class, std::size_t map) const {
    const std::size_t first = (static_cast<std::size_t>(query_class) * shape.maps() + map) * shape.positions;
    return std::span(by_class).subspan(first, shape.positions);
  }
};

/// Fills in columns, sinks and largest from by_class.
void find_sinks(Step& step, const DetectionOptions& options);

/// Of `keys`, ascending, the one with the largest column (ties: lower index); -1 where there is none.
int largest_of(std::span<const float> columns, std::span<const int> keys);

}  // namespace sinkscope
