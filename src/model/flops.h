// What a forward pass costs at least: the operations of its matrix products.
#pragma once

#include <sinkscope/model_config.h>

#include <cstdint>
#include <string>

namespace sinkscope {

/// Floating-point operations, 2 per multiply-add, of every matrix product that a forward pass requires;
/// norms, softmax and other element-wise work are not counted, nor is what an implementation computes beyond
/// that (conversions, recomputed scores). S positions of one sequence, R of them wanted, width W, MLP width
/// M. The last block's output, and what follows from it, is required for the R rows only; its scores are
/// those of all queries, which the columns are sums over. P(n) counts the pairs of a query and a key it sees,
/// for the last n queries: n S, fewer in causal models. With experts, X of E for each token, M is the width
/// of one of them.
struct ForwardFlops {
  /// Query, key, value: 2 S W (W + 2 Wkv) a layer, Wkv the width of all keys; output: 2 S W W, 2 R W W in the
  /// last one.
  double projections = 0;
  /// Scores and the product with the values: 2 P(S) W each a layer; the second 2 P(R) W in the last one.
  double attention = 0;
  double mlp =
      0;  ///< gate, up, down: 6 S W M a layer, 6 R W M in the last one; with experts X times, and 2 S W E
  double head = 0;  ///< 2 R W V over V ids

  double total() const { return projections + attention + mlp + head; }
};

ForwardFlops forward_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted);

/// The formula with this model's numbers, for people; several lines.
std::string describe_flops(const ModelConfig& config, std::int64_t positions, std::int64_t wanted);

}  // namespace sinkscope
