// The buffers of a forward pass.
#pragma once

#include <sinkscope/transformer.h>

#include "model/arena.h"
#include "model/observation_storage.h"
#include "ops/product_input.h"
#include "ops/rope.h"

namespace sinkscope {

/// What the sizes of the buffers follow from.
struct PassShape {
  Backend backend = Backend::cpu;
  at::ScalarType dtype = at::kFloat;
  InputForm form = InputForm::storage;
  std::int64_t width = 0;
  std::int64_t query_width = 0;  // query heads * head_dim
  std::int64_t key_width = 0;    // key/value heads * head_dim
  std::int64_t mlp_width = 0;
  std::int64_t experts = 0;
};
PassShape pass_shape(const ModelConfig& config, at::ScalarType dtype, WeightFormat format, Backend backend);

/// How many rows a block works on.
struct BlockRows {
  std::int64_t tokens = 0;   // keys and values
  std::int64_t queries = 0;  // queries computed
  std::int64_t wanted = 0;   // rows that leave the block
};

/// On the aten backend every tensor is undefined: libtorch's operations make their own. The prepared inputs
/// have memory only where the product wants another form than what it is given.
struct AttentionBuffers {
  ProductInput normed;         // [tokens, width]
  ProductInput wanted_normed;  // [queries, width], where not all queries are computed
  at::Tensor query;            // [queries, query_width]
  at::Tensor key, value;       // [tokens, key_width]
  at::Tensor output;           // [wanted, query_width]
  ProductInput prepared;       // the same as the output matrix wants it
};
struct MlpBuffers {
  ProductInput normed;    // [rows, width]
  at::Tensor gated;       // [rows, mlp_width]
  ProductInput prepared;  // the same as the down matrix wants it
};

/// Of a feed-forward part of experts. Each expert works on some of the rows, at the beginning of the buffers.
struct ExpertsBuffers {
  ProductInput normed;        // [rows, width]
  ProductInput router_input;  // the same in the form of the router
  at::Tensor router;          // [rows, experts]
  ProductInput chosen;        // [rows, width]: those of `normed` that chose the expert
  MlpBuffers mlp;             // `normed` is not taken
  at::Tensor result;          // [rows, width]
  at::Tensor sum;             // [rows, width]
};

AttentionBuffers take_attention_buffers(Arena& arena, const PassShape& shape, const BlockRows& rows);
MlpBuffers take_mlp_buffers(Arena& arena, const PassShape& shape, std::int64_t rows);
ExpertsBuffers take_experts_buffers(Arena& arena, const PassShape& shape, std::int64_t rows);
/// An input of products: [rows, width].
ProductInput take_input(Arena& arena, const PassShape& shape, std::int64_t rows, std::int64_t width);

/// The bytes a pass over N tokens takes from its arena, whatever is wanted of it.
std::int64_t plan_pass(const PassShape& shape, std::int64_t tokens);

/// A table of cosines and sines, grown as longer sequences come.
struct KeptRope {
  RopeOptions options;
  RopeTable table;

  /// The table of these options for at least this many positions.
  const RopeTable& at_least(std::int64_t positions, const RopeOptions& wanted, const at::Device& device);
};

struct ForwardWorkspace::Impl {
  Arena arena;
  ObservationStorage observation;
  KeptRope rope;
};

}  // namespace sinkscope
