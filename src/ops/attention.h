// Attention that hands out its column sums, without ever holding keys x keys scores for all heads.
#pragma once

#include <sinkscope/observation.h>

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "ops/backend.h"

namespace sinkscope {

/// N tokens of several sequences one after the other; no sequence sees another one.
struct AttentionLayout {
  std::span<const std::int64_t> offsets;      // [B + 1], first and last token of each sequence
  std::span<const std::uint8_t> query_class;  // [N], QueryClass
};

/// What to look at. With nothing asked for, looking costs nothing.
struct AttentionRequest {
  const std::uint8_t* removed =
      nullptr;                          // [H, N]: 1 removes that key from that query head; null removes none
  bool columns = false;                 // column_sum, column_used, diagonal, diagonal_used
  bool statistics = false;              // row_entropy, row_max
  std::vector<std::int64_t> map_heads;  // full maps of these query heads
};

/// All float32 on the CPU. "Raw" is the softmax over all keys, "used" the one over the keys that were kept.
/// The tensors "as used" exist only where the request removes keys.
struct AttentionObservation {
  at::Tensor column_sum;     // raw, [3, H, N] by query class
  at::Tensor column_used;    // [H, N], all queries
  at::Tensor diagonal;       // raw A_jj, [H, N]
  at::Tensor diagonal_used;  // [H, N]
  at::Tensor row_entropy;  // raw, nats, [B, 3, H]: mean over the queries of the class, NaN where it has none
  at::Tensor row_max;      // raw, [B, 3, H]: likewise
  std::map<std::pair<std::int64_t, std::int64_t>, at::Tensor>
      maps;                              // (sequence, head) -> raw [S, S], query by key
  std::vector<std::int64_t> empty_rows;  // [B]: (query, head) rows with no key kept
};

struct AttentionResult {
  at::Tensor output;  // [N, H * head_dim], dtype of q
  AttentionObservation observation;
};

/// softmax(q k^T / sqrt(head_dim)) v, bidirectional. q [N, H, head_dim], k and v [N, Hkv, head_dim],
/// contiguous, H a multiple of Hkv (each key head serves H / Hkv consecutive query heads). Scores, softmax
/// and sums in float32, whatever the storage. A row whose keys are all removed gives zeros.
AttentionResult attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionLayout& layout, const AttentionRequest& request);

// The two versions that attention() chooses from.
AttentionResult attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const AttentionLayout& layout, const AttentionRequest& request);
AttentionResult attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                               const AttentionLayout& layout, const AttentionRequest& request);

/// Empty tensors of the shapes above, zeroed, for the parts that the request asks for.
AttentionObservation prepare_observation(std::int64_t heads, const AttentionLayout& layout,
                                         const AttentionRequest& request);
/// Sums over the queries of each class into means.
void finish_statistics(AttentionObservation& observation, const AttentionLayout& layout);

}  // namespace sinkscope
