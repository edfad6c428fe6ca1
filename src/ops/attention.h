// Attention that hands out its column sums, without ever holding keys x keys scores for all heads.
#pragma once

#include <sinkscope/key_action.h>
#include <sinkscope/observation.h>
#include <sinkscope/row_keys.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ops/attention_variant.h"
#include "ops/backend.h"
#include "ops/cpu_kernels.h"

namespace sinkscope {

/// The keys of one sequence: `count` rows of k and v from `begin` on. Token i of the sequence stands at
/// position first_query + i among them.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t count = 0;
  std::int64_t first_query = 0;
};

/// N tokens of several sequences one after the other; no sequence sees another one.
struct AttentionLayout {
  std::span<const std::int64_t> offsets;      // [B + 1], first and last token of each sequence
  std::span<const std::uint8_t> query_class;  // [N], QueryClass
  /// [B]; empty: each sequence's keys are its own tokens. All keys together are K, numbered in the order of
  /// the sequences.
  std::span<const KeyRange> keys = {};
  bool causal = false;      // a query sees no key behind its own position
  std::int64_t window = 0;  // causal only: it sees this many keys, its own among them; 0: all
  std::int64_t prefix = 0;  // causal only, Backend::aten: every query sees the first keys, too

  std::int64_t sequences() const { return static_cast<std::int64_t>(offsets.size()) - 1; }
  KeyRange keys_of(std::int64_t sequence) const;
  /// [B + 1]: the first of each sequence's keys among all K.
  std::vector<std::int64_t> key_offsets() const;
};

/// What to compute and what to look at. With nothing asked for, looking costs nothing.
struct AttentionRequest {
  const std::uint8_t* removed = nullptr;  // [H, K]: 1 changes that key for that query head; null changes none
  RowKeys row_removed = {};               // [H, N, room]: keys changed for one query; one of the two
  KeyChange change = {};                  // what is done to those keys
  bool columns = false;                   // column_sum, column_used, diagonal, diagonal_used
  bool statistics = false;                // row_entropy, row_max
  RowRequest rows = {};                   // row_most, row_least, last_row, changed_share
  std::vector<std::int64_t> map_heads;    // full maps of these query heads
  /// The tokens, ascending, that the rows of q stand for; null: all N. A part of them is for when nobody
  /// looks: columns, statistics and maps are about all queries.
  const std::vector<std::int64_t>* query_tokens = nullptr;
  /// The tokens, ascending and each one of the queries, whose output is wanted; null: that of all queries.
  /// The other queries are looked at all the same, but skip the product with v.
  const std::vector<std::int64_t>* output_tokens = nullptr;
  /// Another attention than softmax(q k^T / sqrt(head_dim)) v; Backend::aten only. What is observed are then
  /// VariantRows::shares of the keys; a slot has no column: its share is what a query's row lacks of 1. The
  /// entropy and the maximum of a row are those of all its shares.
  VariantOfLayer layer_variant = {};
};

/// All float32 on the CPU. "Raw" is the softmax over all keys, "used" the one over the keys that were kept,
/// or with some scaled; where the values alone change it is the raw one. The tensors "as used" exist only
/// where the request changes keys, and column_used and diagonal_used need not.
struct AttentionObservation {
  at::Tensor column_sum;     // raw, [3, H, K] by query class, over the N queries
  at::Tensor column_used;    // [H, K], all queries
  at::Tensor diagonal;       // raw A_jj, [H, K]; 0 for keys without a query
  at::Tensor diagonal_used;  // [H, K]
  at::Tensor row_entropy;  // raw, nats, [B, 3, H]: mean over the queries of the class, NaN where it has none
  at::Tensor row_max;      // raw, [B, 3, H]: likewise
  at::Tensor row_most;     // int32 [H, N, room of rows.most]
  at::Tensor row_least;    // int32 [H, N, room of rows.least]
  at::Tensor last_row;     // [H, K]; left as it is where a sequence's last key has no query
  at::Tensor changed_share;  // [H, N]
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor>
      maps;                              // (sequence, head) -> raw [queries, keys]
  std::vector<std::int64_t> empty_rows;  // [B]: (query, head) rows with no key kept
};

/// softmax(q k^T / sqrt(head_dim)) v over the keys a query sees. q [Q, H, head_dim], k and v [rows, Hkv,
/// head_dim], the last two dimensions contiguous, H a multiple of Hkv (each key head serves H / Hkv
/// consecutive query heads). Scores, softmax and sums in float32, whatever the storage. A row whose keys are
/// all removed gives zeros.
///
/// Writes `output` [wanted rows, H * head_dim] and those tensors of `seen` that the request asks for; all of
/// them are the caller's, and what was in them is forgotten. Those of `seen` may be views of larger tensors
/// with their last dimension contiguous (of columns and diagonals: the last two). The maps and empty_rows are
/// made here; on the aten backend so is `output` where it is undefined.
void attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
               AttentionObservation& seen);

/// Key j of a row is a candidate of RowRequest iff its A_ij > slope * (sum of the row's competing keys) +
/// offset.
struct RowThreshold {
  double slope = 0, offset = 0;
};
RowThreshold row_threshold(const RowRequest& rows, std::int64_t keys);

// The two versions that attention() chooses from, after begin_observation().
void attention_cpu(const CpuKernels& kernels, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
                   AttentionObservation& seen);
void attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
                    AttentionObservation& seen);

struct AttentionResult {
  at::Tensor output;  // [wanted rows, H * head_dim], dtype of q
  AttentionObservation observation;
};

/// The same into new tensors.
AttentionResult attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionLayout& layout, const AttentionRequest& request);

/// Makes the maps, uninitialised, and sets the counts of empty rows to zero.
void begin_observation(const AttentionLayout& layout, const AttentionRequest& request,
                       AttentionObservation& seen);
/// Tensors of the shapes above for what the request asks for, uninitialised.
AttentionObservation prepare_observation(std::int64_t heads, const AttentionLayout& layout,
                                         const AttentionRequest& request);

}  // namespace sinkscope
