// The operations together: a model of one block with tied embeddings, its gradients and that it learns.
#include <cmath>

#include "ops/differentiable/adamw.h"
#include "ops/differentiable/attention.h"
#include "ops/differentiable/cross_entropy.h"
#include "ops/differentiable/embedding.h"
#include "ops/differentiable/linear.h"
#include "ops/differentiable/rms_norm.h"
#include "ops/differentiable/rope.h"
#include "ops/differentiable/swiglu.h"
#include "passes.h"

namespace sinkscope {
namespace {

constexpr std::int64_t batch = 4, positions = 12, width = 32, heads = 4, key_heads = 2, mlp = 48,
                       vocabulary = 20;
constexpr std::int64_t head_width = width / heads;
constexpr double eps = 1e-5;

enum Weight { table, q, k, v, out, gate, up, down, attention_norm, mlp_norm, last_norm };

Tensors weights() {
  at::manual_seed(9);
  const auto matrix = [](std::int64_t rows, std::int64_t columns) {
    return at::randn({rows, columns}) * 0.2;
  };
  return {matrix(vocabulary, width),
          matrix(width, width),
          matrix(key_heads * head_width, width),
          matrix(key_heads * head_width, width),
          matrix(width, width),
          matrix(mlp, width),
          matrix(mlp, width),
          matrix(width, mlp),
          at::ones({width}),
          at::ones({width}),
          at::ones({width})};
}

// Repeats of a random half: the second half of each sequence can be known from the first.
at::Tensor sequences() {
  at::manual_seed(10);
  const at::Tensor half = at::randint(0, vocabulary, {batch, positions / 2}, at::TensorOptions(at::kLong));
  return at::cat({half, half}, 1).reshape({batch * positions});
}

at::Tensor loss_of(Backend backend, const Tensors& w, ProductPrecision precision) {
  const RopeTable angles = rope_table(positions, {head_width, 100.0}, at::kCPU);
  const at::Tensor ids = sequences();
  const auto split = [](const at::Tensor& x, std::int64_t count) {
    return x.view({batch, positions, count, head_width});
  };
  const at::Tensor x = embedding(backend, w[table], ids);
  const auto parts =
      linear(backend, rms_norm(backend, x, w[attention_norm], eps), {w[q], w[k], w[v]}, {}, precision);
  const at::Tensor attended =
      attention(backend, rope(backend, split(parts[0], heads), angles),
                rope(backend, split(parts[1], key_heads), angles), split(parts[2], key_heads),
                1 / std::sqrt(static_cast<double>(head_width)), {true}, precision);
  const at::Tensor mixed = linear(backend, attended.reshape(x.sizes()), w[out], {}, precision);
  const AddedNorm middle = add_rms_norm(backend, x, mixed, w[mlp_norm], eps);
  const auto gates = linear(backend, middle.normed, {w[gate], w[up]}, {}, precision);
  const at::Tensor update = linear(backend, swiglu(backend, gates[0], gates[1]), w[down], {}, precision);
  const at::Tensor last = add_rms_norm(backend, middle.sum, update, w[last_norm], eps).normed;
  const at::Tensor rows =
      at::arange(batch * positions - 1, at::TensorOptions(at::kLong));  // the next token each
  const PredictedRows predicted{rows, ids.narrow(0, 1, rows.size(0)),
                                at::full({rows.size(0)}, 1.0 / static_cast<double>(rows.size(0)))};
  return cross_entropy(backend, last, w[table], predicted, precision).loss;
}

TEST(SmallModelGradient, IsThatOfFloat64) {
  const Operation model = [](Backend backend, const Tensors& w) -> Tensors {
    return {loss_of(backend, w, ProductPrecision::f32)};
  };
  expect_as_in_float64(model, weights(), 1e-5);
  expect_same_bits_for_all_thread_counts(model, weights());
}

double loss_after(int steps, ProductPrecision precision) {
  std::vector<AdamwParameter> parameters;
  Tensors leaves;
  for (const at::Tensor& weight : weights()) {
    leaves.push_back(weight.requires_grad_());
    parameters.push_back({weight, {}, at::zeros(weight.sizes()), at::zeros(weight.sizes())});
  }
  AdamwOptions options;
  options.learning_rate = 0.01;
  for (options.step = 1; options.step <= steps; ++options.step) {
    loss_of(Backend::cpu, leaves, precision).backward();
    Tensors gradients;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      gradients.push_back(leaves[i].grad());
      parameters[i].gradient = leaves[i].grad();
    }
    options.gradient_scale = clipping_scale(gradient_norm(Backend::cpu, gradients), 1.0);
    adamw_step(Backend::cpu, parameters, options);
    for (const at::Tensor& leaf : leaves) leaf.mutable_grad().reset();
  }
  return loss_of(Backend::cpu, leaves, precision).item<double>();
}

TEST(SmallModelTraining, LearnsFourSequencesByHeart) {
  for (const auto precision : {ProductPrecision::f32, ProductPrecision::bf16}) {
    EXPECT_GT(loss_after(0, precision), 2.0);
    EXPECT_LT(loss_after(100, precision), 0.5);
  }
}

}  // namespace
}  // namespace sinkscope
