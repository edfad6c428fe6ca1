// One attention head of one sequence on the calling thread, compiled once per instruction set from
// attention_kernels.cc. Plain pointers only: the tensors are attention_cpu.cc's.
#pragma once

#include <sinkscope/key_action.h>

#include <cstddef>
#include <cstdint>

#include "ops/bfloat16.h"

namespace sinkscope {

/// query_classes of <sinkscope/observation.h>, which pulls in libtorch: its inline functions must not be
/// compiled for one instruction set here and then be shared by the whole program.
inline constexpr int column_classes = 3;

/// S keys and Q <= S queries of D values, for some or all of the tokens of a sequence. Strides count elements
/// from one token to the next.
template <typename T>
struct AttentionHead {
  std::int64_t keys = 0;     // S
  std::int64_t queries = 0;  // Q
  std::int64_t width = 0;    // D
  const T* q = nullptr;      // [Q, D]
  const T* k = nullptr;      // [S, D]
  const T* v = nullptr;      // [S, D]
  T* output = nullptr;       // [wanted rows, D]
  std::int64_t query_stride = 0;
  std::int64_t key_stride = 0;
  std::int64_t output_stride = 0;
  std::int64_t outputs = 0;                     // queries whose output is wanted
  std::int64_t first_token = 0;                 // of the sequence in the batch; what the two lists count from
  std::int64_t first_position = 0;              // of that token among the keys
  bool causal = false;                          // a query sees no key behind its own position
  std::int64_t window = 0;                      // causal only: keys it sees, its own among them; 0: all
  const std::int64_t* query_tokens = nullptr;   // [Q] ascending; null: query i is token i of the sequence
  const std::int64_t* output_tokens = nullptr;  // [outputs] ascending; read where outputs < Q
  const std::uint8_t* query_class =
      nullptr;  // of the sequence's tokens; read when columns or statistics are asked for
  const std::uint8_t* removed = nullptr;  // [S], 1 marks a key that is changed; null: none is
  KeyAction action = KeyAction::remove;   // what is done to those
  float eta = 1;                          // of KeyAction::scale
  const float* mean_value = nullptr;      // [D], of KeyAction::value_mean
  // Lists of keys of single queries, by the sequence's tokens, -1 behind the last one.
  const std::int32_t* row_removed = nullptr;  // [tokens, row_room], in place of `removed`
  std::int64_t row_room = 0;
  std::int64_t most = 0, least = 0;      // room of the lists to be made
  double slope = 0, offset = 0;          // a candidate's share exceeds slope * (sum of the row) + offset
  bool without_self = false;             // a query's own key neither competes nor is listed
  bool as_used = false;                  // lists and last row are of the row after the action
  const std::uint8_t* listed = nullptr;  // [S], 1 = may be listed; null: all
};

/// What one head shows. Pointers are [S] unless said otherwise, zeroed by the caller, and null when nobody
/// asks. "Raw" is the softmax over all keys, "used" the attention after the action: over the keys that were
/// kept, or with some scaled; where only values change it is the raw one.
struct HeadObservation {
  float* column_sum[column_classes] = {};  // raw, +=
  float* column_used = nullptr;            // +=, may be null
  float* diagonal = nullptr;               // raw, = at the queries' own positions
  float* diagonal_used = nullptr;          // =, may be null
  float* map = nullptr;                    // raw, [Q, S], =
  std::int32_t* most = nullptr;            // [tokens, most], =
  std::int32_t* least = nullptr;           // [tokens, least], =
  float* last_row = nullptr;               // =, where the last key has a query
  float* changed_share = nullptr;          // [tokens], =
  bool statistics = false;                 // fill the next two
  double entropy[column_classes] = {};     // sum over the queries of a class of -sum p ln p, nats, raw
  double row_max[column_classes] = {};     // likewise of the largest probability
  std::int64_t empty_rows = 0;             // queries with no key kept; their output is zero
};

/// attend() needs this much 64-byte aligned memory and leaves nothing in it that a later call reads.
template <typename T>
struct AttentionKernels {
  std::size_t (*workspace_bytes)(std::int64_t keys, std::int64_t width);
  void (*attend)(const AttentionHead<T>& head, HeadObservation& seen, void* workspace);
};

}  // namespace sinkscope
