#include "model/experts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <numeric>

#include "ops/parallel.h"
#include "ops/projection.h"

namespace sinkscope {
namespace {

constexpr std::int64_t rows_per_task = 16;

// The rows that chose one expert.
struct ExpertRows {
  std::vector<std::int64_t> row;      // ascending
  std::vector<float> weight;          // of each
  std::vector<std::int64_t> offsets;  // first of each sequence, and their number
};

std::vector<ExpertRows> rows_by_expert(const ChosenExperts& chosen, const ExpertsConfig& config,
                                       std::span<const std::int64_t> offsets) {
  std::vector<ExpertRows> experts(static_cast<std::size_t>(config.count));
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    for (ExpertRows& expert : experts) expert.offsets.push_back(static_cast<std::int64_t>(expert.row.size()));
    for (std::int64_t row = offsets[b]; row < offsets[b + 1]; ++row)
      for (std::int64_t i = row * config.chosen; i < (row + 1) * config.chosen; ++i) {
        ExpertRows& expert = experts[static_cast<std::size_t>(chosen.expert[static_cast<std::size_t>(i)])];
        expert.row.push_back(row);
        expert.weight.push_back(chosen.weight[static_cast<std::size_t>(i)]);
      }
  }
  for (ExpertRows& expert : experts) expert.offsets.push_back(static_cast<std::int64_t>(expert.row.size()));
  return experts;
}

void gather(const at::Tensor& from, const at::Tensor& index, at::Tensor& to) {
  if (!to.defined()) {
    to = at::index_select(from, 0, index);
    return;
  }
  to = to.narrow(0, 0, index.size(0));
  at::index_select_out(to, from, 0, index);
}

ProductInput gather(const ProductInput& from, const at::Tensor& index, const ProductInput& room) {
  ProductInput to = room;
  gather(from.values, index, to.values);
  if (from.form == InputForm::quantised) {
    gather(from.scale, index, to.scale);
    gather(from.zero, index, to.zero);
  }
  return to;
}

at::Tensor first_rows(const at::Tensor& room, std::int64_t rows) {
  return room.defined() ? room.narrow(0, 0, rows) : room;
}

ProductInput first_rows(const ProductInput& room, std::int64_t rows) {
  return {room.form, first_rows(room.values, rows), first_rows(room.scale, rows),
          first_rows(room.zero, rows)};
}

// sum[row[i]] += cast(weight[i] * result[i])
void add_weighted(Backend backend, const ExpertRows& rows, const at::Tensor& index, const at::Tensor& result,
                  at::Tensor& sum) {
  if (backend == Backend::aten) {
    const at::Tensor weight = at::tensor(at::ArrayRef<float>(rows.weight), at::TensorOptions(at::kFloat))
                                  .to(result.device(), result.scalar_type())
                                  .unsqueeze(1);
    sum.index_add_(0, index, result * weight);
    return;
  }
  const std::int64_t width = result.size(1);
  with_storage(result.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(result.size(0), rows_per_task, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        storage_kernels<T>(cpu_kernels())
            .add_scaled(storage_of<T>(sum) + rows.row[static_cast<std::size_t>(i)] * width,
                        storage_of<T>(result) + i * width, rows.weight[static_cast<std::size_t>(i)], width);
    });
  });
}

void run_expert(const TransformerWeights& weights, const MlpWeights& expert, const ExpertRows& rows,
                const ExpertsBuffers& buffers, at::Tensor& sum) {
  const auto count = static_cast<std::int64_t>(rows.row.size());
  if (count == 0) return;
  const RowPlan plan = plan_rows(rows.offsets);
  const at::Tensor index =
      at::tensor(at::ArrayRef<std::int64_t>(rows.row), at::TensorOptions(at::kLong)).to(weights.device);
  const ProductInput chosen = gather(buffers.normed, index, buffers.chosen);
  at::Tensor gated = first_rows(buffers.mlp.gated, count);
  project_gated(expert.gate, expert.up, chosen, plan, gated);
  ProductInput prepared = first_rows(buffers.mlp.prepared, count);
  prepare_input(weights.backend, gated, prepared);
  at::Tensor result = first_rows(buffers.result, count);
  project({{&expert.down, &result}}, prepared, plan);
  add_weighted(weights.backend, rows, index, result, sum);
}

// The weights as the dtype has them.
void round_to(at::ScalarType dtype, std::vector<float>& values) {
  if (dtype == at::kFloat) return;
  const at::Tensor rounded =
      at::tensor(at::ArrayRef<float>(values), at::TensorOptions(at::kFloat)).to(dtype).to(at::kFloat);
  std::copy_n(rounded.data_ptr<float>(), values.size(), values.begin());
}

at::Tensor route(const TransformerWeights& weights, const BlockWeights& block, const RowPlan& rows,
                 ExpertsBuffers& buffers, const at::Tensor& x) {
  const double eps = weights.checkpoint->config().norm_eps;
  prepare_normed(weights.backend, x, block.mlp_norm, eps, buffers.normed);
  const bool own_form = buffers.router_input.values.defined();
  if (own_form) prepare_normed(weights.backend, x, block.mlp_norm, eps, buffers.router_input);
  project({{&block.router, &buffers.router}}, own_form ? buffers.router_input : buffers.normed, rows);
  return buffers.router.to(at::kCPU, at::kFloat);
}

}  // namespace

ChosenExperts choose_experts(const at::Tensor& logits, const at::Tensor& selection_bias,
                             const ExpertsConfig& config) {
  const at::Tensor probability = at::softmax(logits.to(at::kFloat), -1).contiguous();
  const at::Tensor score =
      selection_bias.defined() ? (probability + selection_bias).contiguous() : probability;
  ChosenExperts chosen;
  std::vector<std::int64_t> order(static_cast<std::size_t>(config.count));
  for (std::int64_t row = 0; row < logits.size(0); ++row) {
    const float* s = score.data_ptr<float>() + row * config.count;
    const float* p = probability.data_ptr<float>() + row * config.count;
    std::iota(order.begin(), order.end(), 0);
    const auto better = [&](std::int64_t a, std::int64_t b) { return s[a] != s[b] ? s[a] > s[b] : a < b; };
    std::partial_sort(order.begin(), order.begin() + config.chosen, order.end(), better);
    std::sort(order.begin(), order.begin() + config.chosen);
    float sum = 0;
    for (std::int64_t i = 0; i < config.chosen; ++i) sum += p[order[static_cast<std::size_t>(i)]];
    for (std::int64_t i = 0; i < config.chosen; ++i) {
      const std::int64_t expert = order[static_cast<std::size_t>(i)];
      chosen.expert.push_back(expert);
      chosen.weight.push_back(config.normalised ? p[expert] / sum : p[expert]);
    }
  }
  return chosen;
}

void feed_forward_experts(const TransformerWeights& weights, const BlockWeights& block,
                          std::span<const std::int64_t> offsets, const RowPlan& rows, ExpertsBuffers& buffers,
                          at::Tensor& x) {
  const ExpertsConfig& config = *weights.checkpoint->config().experts;
  ChosenExperts chosen =
      choose_experts(route(weights, block, rows, buffers, x), block.selection_bias, config);
  round_to(weights.dtype, chosen.weight);
  at::Tensor sum = buffers.sum.defined() ? buffers.sum : at::zeros_like(x);
  sum.zero_();
  const std::vector<ExpertRows> by_expert = rows_by_expert(chosen, config, offsets);
  for (std::size_t e = 0; e < by_expert.size(); ++e)
    run_expert(weights, block.experts[e], by_expert[e], buffers, sum);
  x.add_(sum);
}

}  // namespace sinkscope
