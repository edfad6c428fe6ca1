// What one forward pass lets one see, and what it is asked to change.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace sinkscope {

/// The classes of queries by which column sums are kept, in the order of the first axis of every column
/// array. Decided on the input: the mask id makes a query `masked` wherever it stands, else its place
/// decides.
enum class QueryClass : std::uint8_t { prompt = 0, decoded = 1, masked = 2 };
inline constexpr std::int64_t query_classes = 3;

/// How much a forward pass records.
enum class Capture {
  none,     ///< nothing
  columns,  ///< column sums by query class and the diagonal
  full,     ///< also row entropy, row maximum and value norms
};

struct LayerHead {
  std::int64_t layer = 0;
  std::int64_t head = 0;
  auto operator<=>(const LayerHead&) const = default;
};

/// N tokens of B sequences one after the other. Sequences are ragged, never padded: positions count from each
/// one's first token, and no sequence sees another.
struct TokenBatch {
  std::vector<std::int32_t> ids;          // [N]
  std::vector<std::int64_t> offsets{0};   // [B + 1]
  std::vector<std::uint8_t> query_class;  // [N], QueryClass

  std::int64_t tokens() const { return static_cast<std::int64_t>(ids.size()); }
  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
};

/// Float32 tensors on the CPU over L layers, H query heads, the N tokens of the batch (the queries) and K
/// keys: those of the same tokens, or with a cache all positions of each sequence's slot, sequence by
/// sequence. `Raw` is the softmax over all keys, `used` the one over the keys that were kept; those tensors
/// exist only where keys were removed. Undefined tensors were not asked for.
struct Observation {
  at::Tensor column_sum;     // raw, [3, L, H, K] by query class
  at::Tensor column_used;    // [L, H, K]
  at::Tensor diagonal;       // raw A_jj, [L, H, K]; 0 for keys whose query is not in the batch
  at::Tensor diagonal_used;  // [L, H, K]
  at::Tensor row_entropy;  // raw, nats, [B, 3, L, H]: mean over the queries of a class; NaN where it has none
  at::Tensor row_max;      // raw, [B, 3, L, H]: likewise
  at::Tensor value_norm;   // L2 norm of each value vector, [L, Hkv, K]
  // Of RowRequest; int32 lists are of keys of the query's own sequence.
  at::Tensor row_most;       // int32 [L, H, N, room]
  at::Tensor row_least;      // int32 [L, H, N, room]
  at::Tensor last_row;       // [L, H, K]; what it held before where a sequence's last key has no query
  at::Tensor changed_share;  // [L, H, N]
  std::vector<std::map<LayerHead, at::Tensor>> maps;  // per sequence: raw, query by key
  std::vector<std::int64_t> empty_rows;  // per sequence: (layer, head, query) rows with no key kept
};

}  // namespace sinkscope
