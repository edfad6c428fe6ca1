// The feed-forward part of a block of experts.
#pragma once

#include "model/weights.h"
#include "model/workspace.h"
#include "ops/row_plan.h"

namespace sinkscope {

/// Which experts a token chose, and what their results count.
struct ChosenExperts {
  std::vector<std::int64_t> expert;  // [rows * chosen], ascending for each row
  std::vector<float> weight;         // likewise
};

/// p = softmax over the router's logits [rows, experts] in float32; each row chooses the experts with the
/// largest p + selection_bias, ties to the lower index, and weighs them with p, scaled to sum to 1 where
/// config says so.
ChosenExperts choose_experts(const at::Tensor& logits, const at::Tensor& selection_bias,
                             const ExpertsConfig& config);

/// x += sum over the chosen experts e, in ascending order, of cast(weight_e * down_e(silu(gate_e h) * up_e
/// h)), h = rms_norm(x); weights and every step of the sum are cast to the dtype. x [rows, width]; offsets:
/// first row of each sequence, and the number of rows.
void feed_forward_experts(const TransformerWeights& weights, const BlockWeights& block,
                          std::span<const std::int64_t> offsets, const RowPlan& rows, ExpertsBuffers& buffers,
                          at::Tensor& x);

}  // namespace sinkscope
