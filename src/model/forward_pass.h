// One forward pass, block by block.
#pragma once

#include <sinkscope/transformer.h>

#include "model/observation_storage.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "ops/attention.h"
#include "ops/rope.h"
#include "ops/row_plan.h"

namespace sinkscope {

/// Rows that go through a part of a block: all tokens, or those that are wanted.
struct PassRows {
  std::vector<std::int64_t> offsets;  // [sequences + 1] first row of each sequence
  RowPlan plan;
  at::Tensor positions;                               // int64 [rows], each in its own sequence
  const std::vector<std::int64_t>* tokens = nullptr;  // ascending; null: all

  std::int64_t count() const { return plan.rows; }
};

/// What the head works on: x under the final norm, where there is one.
void prepare_for_head(const TransformerWeights& weights, const at::Tensor& x, ProductInput& input);

/// Holds what the blocks of a pass share. x is the residual stream: [N, width], and [W, width] once the last
/// block has dropped the rows that nobody wants.
class ForwardPass {
 public:
  ForwardPass(const TransformerWeights& weights, const ForwardRequest& request, ForwardWorkspace& workspace);
  ForwardResult run();

 private:
  void run_block(std::int64_t layer);
  void project_heads(const BlockWeights& block, const PassRows& queries, AttentionBuffers& buffers);
  void attend(std::int64_t layer, const PassRows& outputs);
  AttentionRequest attention_request(std::int64_t layer, const PassRows& queries,
                                     const PassRows& outputs) const;
  /// Keys and values of the layer, those of the cache where there is one, to which the buffers' are written.
  std::pair<at::Tensor, at::Tensor> keys_and_values(std::int64_t layer,
                                                    const AttentionBuffers& buffers) const;
  at::Tensor norms_of_values(const at::Tensor& values) const;
  void advance_cache() const;
  void feed_forward(const BlockWeights& block, const PassRows& rows);
  void add_positions();
  /// What a part of a block works on: x, normed by `norm` unless norms come behind.
  void prepare_part(const at::Tensor& norm, ProductInput& input) const;
  /// x = norm(x) where norms come behind.
  void end_part(const at::Tensor& norm);
  void finish(ForwardResult& result);
  /// What leaves block `layer`: the rows wanted in the end after the last one, unless all are looked at.
  const PassRows& rows_after(std::int64_t layer) const;
  void keep_rows(const PassRows& rows);

  const TransformerWeights& weights_;
  const ModelConfig& config_;
  const ForwardRequest& request_;
  ForwardWorkspace::Impl& workspace_;
  PassShape shape_;
  Arena& arena_;
  PassRows all_;
  PassRows wanted_;
  std::vector<KeyRange> keys_;  // of each sequence, with a cache
  RopeTable rope_;
  std::int64_t block_mark_ = 0;  // where a block's buffers begin in the arena
  at::Tensor x_;
  at::Tensor wanted_x_;  // [W, width], room for the rows that leave the last block
  std::vector<at::Tensor> hidden_norms_;
};

}  // namespace sinkscope
