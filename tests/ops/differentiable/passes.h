// One forward and backward pass of an operation, and how two of them compare.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "ops/backend.h"
#include "ops/parallel.h"

namespace sinkscope {

using Tensors = std::vector<at::Tensor>;
using Operation = std::function<Tensors(Backend backend, const Tensors& inputs)>;

struct Pass {
  Tensors outputs, gradients;
};

inline at::Tensor random(at::IntArrayRef sizes) { return at::randn(sizes); }

/// Weights of the outputs in the loss that is differentiated, one tensor an output, the same for the same
/// shapes.
inline Tensors output_gradients(const Tensors& outputs) {
  at::manual_seed(77);
  Tensors made;
  for (const at::Tensor& output : outputs) made.push_back(at::randn(output.sizes()));
  return made;
}

/// The operation on `inputs` in `type` (integers stay), and the gradients of sum(output weight) over all
/// outputs.
inline Pass run(Backend backend, at::ScalarType type, const Operation& operation, const Tensors& inputs,
                const std::function<at::Tensor(const at::Tensor&)>& round = nullptr) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.is_floating_point() ? input.detach().to(type).clone().requires_grad_() : input);
  Pass pass{operation(backend, leaves), {}};
  const Tensors weights = output_gradients(pass.outputs);
  at::Tensor loss;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const at::Tensor weight = round ? round(weights[i]) : weights[i];
    const at::Tensor part = (pass.outputs[i] * weight.to(type)).sum();
    loss = loss.defined() ? loss + part : part;
  }
  loss.backward();
  for (const at::Tensor& leaf : leaves)
    if (leaf.is_floating_point())
      pass.gradients.push_back(leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf));
  for (at::Tensor& output : pass.outputs) output = output.detach();
  return pass;
}

inline void expect_within(const at::Tensor& actual, const at::Tensor& expected, const at::Tensor& bound,
                          const char* what) {
  ASSERT_EQ(actual.sizes(), expected.sizes()) << what;
  if (actual.numel() == 0) return;
  const at::Tensor excess = (actual.to(at::kDouble) - expected).abs() - bound;
  EXPECT_LE(excess.max().item<double>(), 0) << what << ", of " << expected.abs().max().item<double>();
}

/// Every value within `relative` of the largest magnitude of its tensor, or of `least_scale` where all of it
/// cancels.
inline void expect_close(const Pass& actual, const Pass& expected, double relative, double least_scale) {
  const auto compare = [&](const Tensors& a, const Tensors& b, const char* what) {
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      SCOPED_TRACE(i);
      if (b[i].numel() == 0) continue;
      const at::Tensor bound = b[i].abs().max().clamp_min(least_scale) * relative;
      expect_within(a[i], b[i], bound, what);
    }
  };
  compare(actual.outputs, expected.outputs, "output");
  compare(actual.gradients, expected.gradients, "gradient");
}

/// The kernels in float32 against libtorch and its autograd in float64.
inline void expect_as_in_float64(const Operation& operation, const Tensors& inputs, double relative,
                                 double least_scale = 1e-20) {
  expect_close(run(Backend::cpu, at::kFloat, operation, inputs),
               run(Backend::aten, at::kDouble, operation, inputs), relative, least_scale);
}

inline void expect_same_bits_for_all_thread_counts(const Operation& operation, const Tensors& inputs) {
  set_thread_count(1);
  const Pass alone = run(Backend::cpu, at::kFloat, operation, inputs);
  for (const int threads : {2, 3}) {
    set_thread_count(threads);
    const Pass together = run(Backend::cpu, at::kFloat, operation, inputs);
    for (std::size_t i = 0; i < alone.outputs.size(); ++i)
      EXPECT_TRUE(at::equal(alone.outputs[i], together.outputs[i])) << threads << " threads, output " << i;
    for (std::size_t i = 0; i < alone.gradients.size(); ++i)
      EXPECT_TRUE(at::equal(alone.gradients[i], together.gradients[i]))
          << threads << " threads, gradient " << i;
  }
  set_thread_count(0);
}

/// Central difference of sum(output weight) along a random direction, against the gradients' own slope.
inline void expect_slope(const Operation& operation, const Tensors& inputs, double step, double relative) {
  const Pass pass = run(Backend::cpu, at::kFloat, operation, inputs);
  Tensors directions;
  double slope = 0, size = 0;
  at::manual_seed(5);
  for (const at::Tensor& input : inputs) {
    directions.push_back(input.is_floating_point() ? at::randn(input.sizes()) : at::Tensor());
    if (!directions.back().defined()) continue;
    const at::Tensor products = pass.gradients[directions.size() - 1].to(at::kDouble) * directions.back();
    slope += products.sum().item<double>();
    size += products.abs().sum().item<double>();
  }
  const auto loss_at = [&](double along) {
    const at::NoGradGuard no_gradients;
    Tensors moved;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      moved.push_back(directions[i].defined() ? inputs[i] + directions[i] * along : inputs[i]);
    const Tensors outputs = operation(Backend::cpu, moved);
    const Tensors weights = output_gradients(outputs);
    double loss = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      loss += (outputs[i].to(at::kDouble) * weights[i]).sum().item<double>();
    return loss;
  };
  EXPECT_NEAR((loss_at(step) - loss_at(-step)) / (2 * step), slope, relative * size);
}

inline at::Tensor rounded(const at::Tensor& x) { return x.to(at::kBFloat16).to(x.scalar_type()); }

constexpr double float_rounding = 1.0 / (1 << 24);  // relative error of one rounding to float32
constexpr double bfloat_rounding = 1.0 / 256;       // and to bfloat16

}  // namespace sinkscope
