#include "ops/differentiable/cross_entropy.h"

#include "passes.h"

namespace sinkscope {
namespace {

struct Case {
  std::int64_t positions, width, vocabulary, rows;

  Tensors inputs() const {
    at::manual_seed(6);
    return {random({positions, width}), random({vocabulary, width}) * 0.3};
  }
  PredictedRows predicted() const {
    at::manual_seed(7);
    const auto integers = at::TensorOptions(at::kLong);
    return {at::randint(0, positions, {rows}, integers), at::randint(0, vocabulary, {rows}, integers),
            at::rand({rows})};
  }
  Operation loss(ProductPrecision precision) const {
    return [predicted = predicted(), precision](Backend backend, const Tensors& in) -> Tensors {
      return {cross_entropy(backend, in[0], in[1], predicted, precision).loss};
    };
  }
};

class CrossEntropyGradient : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, CrossEntropyGradient,
                         testing::Values(Case{1, 1, 1, 1}, Case{5, 8, 3, 2}, Case{70, 33, 600, 130},
                                         Case{40, 300, 1100, 40}, Case{1300, 16, 50, 1200}, Case{9, 8, 30, 0},
                                         Case{300, 8, 70000, 290}));

// The sums of a softmax have V terms in 16 lanes, those of products W, V or R; the largest one counts.
TEST_P(CrossEntropyGradient, IsThatOfFloat64) {
  const Case& c = GetParam();
  const auto terms = static_cast<double>(std::max({c.width, c.vocabulary / 16, c.rows}) + 20);
  expect_as_in_float64(c.loss(ProductPrecision::f32), c.inputs(), 2 * terms * float_rounding);
}

TEST_P(CrossEntropyGradient, HasTheSameBitsForAllThreadCounts) {
  for (const auto precision : {ProductPrecision::f32, ProductPrecision::bf16})
    expect_same_bits_for_all_thread_counts(GetParam().loss(precision), GetParam().inputs());
}

// On rounded factors dl alone is rounded: each of its values by one part in 256.
TEST_P(CrossEntropyGradient, InBfloat16IsWithinTheRoundings) {
  const Case& c = GetParam();
  Tensors in = c.inputs();
  const Pass actual = run(Backend::cpu, at::kFloat, c.loss(ProductPrecision::bf16), in);
  for (at::Tensor& factor : in) factor = rounded(factor);
  const Pass exact = run(Backend::aten, at::kDouble, c.loss(ProductPrecision::f32), in);
  const PredictedRows predicted = c.predicted();
  const at::Tensor hidden = in[0].to(at::kDouble).index_select(0, predicted.rows),
                   head = in[1].to(at::kDouble);
  const at::Tensor one_hot = at::one_hot(predicted.targets, c.vocabulary).to(at::kDouble);
  const at::Tensor factor = output_gradients(exact.outputs)[0].to(at::kDouble).abs();
  const at::Tensor dl = (at::softmax(at::matmul(hidden, head.t()), -1) - one_hot).abs() *
                        predicted.weights.unsqueeze(1) * factor * (1.1 * bfloat_rounding);
  const at::Tensor of_hidden =
      at::zeros({c.positions, c.width}, at::kDouble).index_add(0, predicted.rows, at::matmul(dl, head.abs()));
  expect_within(actual.outputs[0], exact.outputs[0], exact.outputs[0].abs() * 1e-4 + 1e-6, "loss");
  expect_within(actual.gradients[0], exact.gradients[0], of_hidden + 1e-5, "dhidden");
  expect_within(actual.gradients[1], exact.gradients[1], at::matmul(dl.t(), hidden.abs()) + 1e-5, "dhead");
}

TEST(CrossEntropySlope, IsWhatTheGradientsSay) {
  for (const Case& c : {Case{20, 12, 90, 15}, Case{200, 8, 700, 150}})
    expect_slope(c.loss(ProductPrecision::f32), c.inputs(), 1e-2, 1e-3);
}

TEST(CrossEntropy, SaysTheLossOfEveryRow) {
  const Case c{30, 16, 40, 25};
  const Tensors in = c.inputs();
  const CrossEntropy ours = cross_entropy(Backend::cpu, in[0], in[1], c.predicted(), ProductPrecision::f32);
  const CrossEntropy plain = cross_entropy(Backend::aten, in[0], in[1], c.predicted(), ProductPrecision::f32);
  EXPECT_TRUE(at::allclose(ours.row_losses, plain.row_losses, 1e-5, 1e-5));
  EXPECT_TRUE(at::allclose(ours.loss, (plain.row_losses * c.predicted().weights).sum(), 1e-5, 1e-5));
  EXPECT_FALSE(ours.row_losses.requires_grad());
}

TEST(CrossEntropy, OfNoRowsIsZeroAndSoAreItsGradients) {
  const Case c{4, 3, 5, 0};
  const Pass pass = run(Backend::cpu, at::kFloat, c.loss(ProductPrecision::bf16), c.inputs());
  EXPECT_EQ(pass.outputs[0].item<float>(), 0);
  EXPECT_TRUE(at::equal(pass.gradients[0], at::zeros({4, 3})));
  EXPECT_TRUE(at::equal(pass.gradients[1], at::zeros({5, 3})));
}

// A head that is the embedding, too, gets both gradients.
TEST(CrossEntropy, OfATiedHeadAddsUp) {
  const Case c{6, 8, 6, 5};
  const Operation tied = [&](Backend backend, const Tensors& in) -> Tensors {
    return {cross_entropy(backend, in[0] * 2, in[0], c.predicted(), ProductPrecision::f32).loss};
  };
  expect_as_in_float64(tied, {random({6, 8})}, 1e-5);
}

TEST(CrossEntropy, WithoutGradientsIsTheSameLoss) {
  const Case c{30, 16, 40, 25};
  const at::Tensor hidden = c.inputs()[0].requires_grad_(), head = c.inputs()[1];
  const auto loss = [&] {
    return cross_entropy(Backend::cpu, hidden, head, c.predicted(), ProductPrecision::bf16).loss;
  };
  const at::Tensor with = loss();
  const at::NoGradGuard no_gradients;
  EXPECT_TRUE(at::equal(with.detach(), loss()));
  EXPECT_FALSE(loss().requires_grad());
}

TEST(CrossEntropy, RunsBackwardOnce) {
  const Case c{4, 3, 5, 3};
  const at::Tensor hidden = random({4, 3}).requires_grad_(), head = random({5, 3});
  const at::Tensor loss =
      cross_entropy(Backend::cpu, hidden, head, c.predicted(), ProductPrecision::f32).loss;
  loss.backward({}, /*retain_graph=*/true);
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(CrossEntropy, SaysWhatDoesNotFit) {
  const at::Tensor hidden = random({4, 3}), head = random({5, 3});
  const auto integers = at::TensorOptions(at::kLong);
  const auto loss = [&](std::int64_t row, std::int64_t target) {
    return cross_entropy(Backend::cpu, hidden, head,
                         {at::full({1}, row, integers), at::full({1}, target, integers), at::ones({1})},
                         ProductPrecision::f32);
  };
  EXPECT_NO_THROW(loss(3, 4));
  EXPECT_THROW(loss(4, 4), c10::Error);
  EXPECT_THROW(loss(3, 5), c10::Error);
  EXPECT_THROW(loss(-1, 0), c10::Error);
  EXPECT_THROW(cross_entropy(Backend::cpu, hidden, random({5, 4}), {}, ProductPrecision::f32), c10::Error);
}

}  // namespace
}  // namespace sinkscope
