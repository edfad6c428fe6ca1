#include "ops/differentiable/linear.h"

#include "passes.h"

namespace sinkscope {
namespace {

Operation one_weight(ProductPrecision precision) {
  return [=](Backend backend, const Tensors& in) -> Tensors {
    return {linear(backend, in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), precision)};
  };
}

struct Shape {
  std::int64_t rows, in, out;
};
class LinearGradient : public testing::TestWithParam<Shape> {
 protected:
  Tensors inputs() const {
    const auto [rows, in, out] = GetParam();
    at::manual_seed(1);
    return {random({rows, in}), random({out, in}), random({out})};
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, LinearGradient,
                         testing::Values(Shape{1, 1, 1}, Shape{3, 5, 7}, Shape{64, 32, 48},
                                         Shape{65, 33, 129}, Shape{300, 257, 17}, Shape{2050, 40, 130},
                                         Shape{0, 4, 3}));

// A sum of n float32 products errs by at most n roundings of the sum of magnitudes.
void expect_within_summation(const Pass& actual, const Pass& exact, const Tensors& in, const at::Tensor& dy) {
  const at::Tensor x = in[0].abs(), weight = in[1].abs(), bias = in[2].abs(), d = dy.abs();
  const auto bound = [](const at::Tensor& magnitudes, std::int64_t terms) {
    return magnitudes * (static_cast<double>(terms + 1) * float_rounding) + 1e-30;
  };
  const std::int64_t rows = x.size(0), width = x.size(1), out = weight.size(0);
  expect_within(actual.outputs[0], exact.outputs[0], bound(at::matmul(x, weight.t()) + bias, width + 1), "y");
  expect_within(actual.gradients[0], exact.gradients[0], bound(at::matmul(d, weight), out), "dx");
  expect_within(actual.gradients[1], exact.gradients[1], bound(at::matmul(d.t(), x), rows), "dW");
  expect_within(actual.gradients[2], exact.gradients[2], bound(d.sum(0), rows), "db");
}

TEST_P(LinearGradient, IsThatOfFloat64) {
  const Operation operation = one_weight(ProductPrecision::f32);
  const Pass exact = run(Backend::aten, at::kDouble, operation, inputs());
  expect_within_summation(run(Backend::cpu, at::kFloat, operation, inputs()), exact, inputs(),
                          output_gradients(exact.outputs)[0]);
}

// On factors that bfloat16 holds exactly nothing but the sums in float32 can err; but db is of what dy was.
TEST_P(LinearGradient, InBfloat16IsThatOfTheRoundedFactors) {
  Tensors in = inputs();
  const Pass actual = run(Backend::cpu, at::kFloat, one_weight(ProductPrecision::bf16), in, rounded);
  in[0] = rounded(in[0]);
  in[1] = rounded(in[1]);
  const Pass exact = run(Backend::aten, at::kDouble, one_weight(ProductPrecision::f32), in, rounded);
  expect_within_summation(actual, exact, in, rounded(output_gradients(exact.outputs)[0]));
}

TEST_P(LinearGradient, HasTheSameBitsForAllThreadCounts) {
  for (const auto precision : {ProductPrecision::f32, ProductPrecision::bf16})
    expect_same_bits_for_all_thread_counts(one_weight(precision), inputs());
}

TEST(Linear, RoundsToBfloat16WhenAsked) {
  const at::Tensor x = random({4, 8}), weight = random({3, 8});
  const at::Tensor plain = linear(Backend::cpu, x, weight, {}, ProductPrecision::f32);
  const at::Tensor coarse = linear(Backend::cpu, x, weight, {}, ProductPrecision::bf16);
  EXPECT_FALSE(at::equal(plain, coarse));
  EXPECT_TRUE(at::allclose(
      coarse, linear(Backend::cpu, rounded(x), rounded(weight), {}, ProductPrecision::f32), 1e-5, 1e-5));
}

// Several weights: each as alone, and one gradient of x. The last dimension is the width, whatever is before.
TEST(Linear, MultipliesOneInputBySeveralWeights) {
  for (const auto precision : {ProductPrecision::f32, ProductPrecision::bf16}) {
    const Operation together = [=](Backend backend, const Tensors& in) {
      return linear(backend, in[0], {in[1], in[2], in[3]}, {}, precision);
    };
    const Operation apart = [=](Backend backend, const Tensors& in) -> Tensors {
      return {linear(backend, in[0], in[1], {}, precision), linear(backend, in[0], in[2], {}, precision),
              linear(backend, in[0], in[3], {}, precision)};
    };
    const Tensors in{random({3, 50, 24}), random({24, 24}), random({8, 24}), random({130, 24})};
    const Pass one = run(Backend::cpu, at::kFloat, together, in);
    const Pass many = run(Backend::cpu, at::kFloat, apart, in);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_TRUE(at::equal(one.outputs[i], many.outputs[i]));
      EXPECT_TRUE(at::equal(one.gradients[i + 1], many.gradients[i + 1]));
    }
    EXPECT_EQ(one.outputs[2].sizes(), (std::vector<std::int64_t>{3, 50, 130}));
    EXPECT_TRUE(at::allclose(one.gradients[0], many.gradients[0], 1e-5, 1e-4));
    expect_same_bits_for_all_thread_counts(together, in);
  }
}

TEST(Linear, PassesOverGradientsNobodyWants) {
  const at::Tensor x = random({9, 4}), weight = random({5, 4}).requires_grad_();
  linear(Backend::cpu, x, weight, {}, ProductPrecision::bf16).sum().backward();
  EXPECT_TRUE(at::allclose(weight.grad(), rounded(x).sum(0).expand({5, 4}), 1e-5, 1e-5));
}

TEST(Linear, NamesShapesThatDoNotFit) {
  EXPECT_THROW(linear(Backend::cpu, random({2, 3}), random({4, 5}), {}, ProductPrecision::f32), c10::Error);
  EXPECT_THROW(linear(Backend::cpu, random({2, 3}), random({4, 3}), random({3}), ProductPrecision::f32),
               c10::Error);
  EXPECT_THROW(
      linear(Backend::cpu, random({2, 3}).to(at::kDouble), random({4, 3}), {}, ProductPrecision::f32),
      c10::Error);
}

TEST(MatrixProduct, WidensWhatTheProcessorCannotMultiply) {
  constexpr std::int64_t rows = 5, columns = 7, inner = 33;
  const at::Tensor a = random({inner, rows}).to(at::kBFloat16),
                   b = random({columns, inner}).to(at::kBFloat16);
  at::Tensor by_processor = at::ones({rows, columns}), by_floats = at::ones({rows, columns});
  const auto factor = [](const at::Tensor& t) {
    return transposed(static_cast<const Bfloat16*>(t.data_ptr()), t.size(1));
  };
  multiply_matrices({rows, columns, inner}, factor(a), factor(b), by_processor.data_ptr<float>(), columns,
                    true);
  multiply_widened({rows, columns, inner}, factor(a), factor(b), by_floats.data_ptr<float>(), columns, true);
  EXPECT_TRUE(at::allclose(by_processor, by_floats, 1e-5, 1e-5));
  EXPECT_TRUE(
      at::allclose(by_floats, at::matmul(a.to(at::kFloat).t(), b.to(at::kFloat).t()) + 1, 1e-5, 1e-5));
}

}  // namespace
}  // namespace sinkscope
