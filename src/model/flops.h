// What a forward pass costs at least: the operations of its matrix products.
#pragma once

#include <sinkscope/model_config.h>

#include <cstdint>
#include <string>

namespace sinkscope {

/// Floating-point operations, 2 per multiply-add, of every matrix product that a forward pass requires;
/// norms, softmax and other element-wise work are not counted, nor is what an implementation computes beyond
/// that (conversions, recomputed scores). S positions of one sequence, width W, MLP width M:
struct ForwardFlops {
  double projections =
      0;  ///< query, key, value, output: 2 S W (2 W + 2 Wkv) a layer, Wkv the width of all keys
  double attention = 0;  ///< scores and the product with the values: 4 S S W a layer
  double mlp = 0;        ///< gate, up, down: 6 S W M a layer
  double head = 0;       ///< 2 R W V for R rows of logits over V ids

  double total() const { return projections + attention + mlp + head; }
};

ForwardFlops forward_flops(const ModelConfig& config, std::int64_t positions, std::int64_t head_rows);

/// The formula with this model's numbers, for people; several lines.
std::string describe_flops(const ModelConfig& config, std::int64_t positions, std::int64_t head_rows);

}  // namespace sinkscope
