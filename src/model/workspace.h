// The buffers of a forward pass.
#pragma once

#include <sinkscope/transformer.h>

#include "model/arena.h"
#include "model/observation_storage.h"
#include "model/weights.h"
#include "ops/product_input.h"

namespace sinkscope {

/// N tokens, W of them wanted in the end. On the aten backend every tensor is undefined: libtorch's
/// operations make their own.
struct AttentionBuffers {
  ProductInput normed;         // [N, width]
  at::Tensor query;            // [N or W, heads * head_dim]
  ProductInput wanted_normed;  // [W, width], where only the wanted queries are computed
  at::Tensor key, value;       // [N, kv_heads * head_dim]
  at::Tensor output;           // [N or W, heads * head_dim]
  ProductInput prepared;       // the same as the output matrix wants it
};
struct MlpBuffers {
  ProductInput normed;    // [rows, width]
  at::Tensor gated;       // [rows, mlp_width]
  ProductInput prepared;  // the same as the down matrix wants it
};

/// How many rows a block works on.
struct BlockRows {
  std::int64_t tokens = 0;   // keys and values
  std::int64_t queries = 0;  // queries computed
  std::int64_t wanted = 0;   // rows that leave the block
};

AttentionBuffers take_attention_buffers(Arena& arena, const TransformerWeights& weights,
                                        const BlockRows& rows);
MlpBuffers take_mlp_buffers(Arena& arena, const TransformerWeights& weights, std::int64_t rows);

/// An input of N rows for this matrix.
ProductInput take_input(Arena& arena, const Linear& linear, std::int64_t rows);

/// The bytes a pass over N tokens takes from its arena, whatever is wanted of it.
std::int64_t plan_pass(const TransformerWeights& weights, std::int64_t tokens);

struct ForwardWorkspace::Impl {
  Arena arena;
  ObservationStorage observation;
};

}  // namespace sinkscope
