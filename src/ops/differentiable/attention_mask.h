// Which keys a query sees.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sinkscope {

struct AttentionMask {
  bool causal = false;      // a query sees no key behind its own position; else all see all
  std::int64_t prefix = 0;  // causal only: but the first `prefix` keys are seen by all queries
  std::int64_t window = 0;  // causal only: it sees this many keys, its own among them, and the prefix; 0: all
};

/// Keys [0, prefix) and [begin, end), prefix <= begin. All three grow with the query.
struct SeenKeys {
  std::int64_t prefix, begin, end;
};

inline SeenKeys seen_keys(const AttentionMask& mask, std::int64_t query, std::int64_t positions) {
  if (!mask.causal) return {0, 0, positions};
  const std::int64_t prefix = std::min(mask.prefix, positions);
  const std::int64_t first = mask.window > 0 ? std::max<std::int64_t>(0, query + 1 - mask.window) : 0;
  const std::int64_t end = std::max(query + 1, prefix);
  if (prefix == 0 || first > prefix) return {prefix, first, end};
  return {0, 0, end};
}

}  // namespace sinkscope
