// Which tokens are sinks, in which state, and where they stand (sinks.md 5.4).
#pragma once

#include <array>
#include <cstdint>
#include <map>

#include "measure/step.h"

namespace sinkscope {

/// Sinks are counted once for every (step, layer, head), positions once for every step.
struct TokenCount {
  std::uint64_t sinks = 0;
  std::uint64_t positions = 0;
};

constexpr std::size_t place_count = 10;

struct TokenSums {
  TokenCount all;
  std::map<std::int32_t, TokenCount> by_id;
  std::array<TokenCount, status_count> by_status = {};
  std::array<TokenCount, place_count> by_place = {};  ///< tenths of the row: floor(10 j / S)
  double relative_position = 0;                       ///< sum of (j + 1/2) / S over the sinks
  std::map<std::int64_t, TokenCount> by_distance;     ///< to the nearest masked position; 0 = is one
  TokenCount without_masks;                           ///< at steps at which nothing is masked
};

void add_step(TokenSums& sums, const Step& step);

/// Counts by id are meaningless across tokenizers: with_ids says whether they are added too.
void add(TokenSums& sums, const TokenSums& other, bool with_ids);

}  // namespace sinkscope
