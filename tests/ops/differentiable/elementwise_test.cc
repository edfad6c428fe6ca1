// Norms, rope, SwiGLU and the embedding: what passes over values once.
#include "ops/differentiable/embedding.h"
#include "ops/differentiable/rms_norm.h"
#include "ops/differentiable/rope.h"
#include "ops/differentiable/swiglu.h"
#include "passes.h"

namespace sinkscope {
namespace {

constexpr double eps = 1e-5;

// A row's sum has `width` terms, the weight's gradient as many as there are rows; a handful of roundings
// besides.
double norm_bound(std::int64_t rows, std::int64_t width) {
  return static_cast<double>(rows + width + 10) * float_rounding;
}

class NormGradient : public testing::TestWithParam<std::pair<std::int64_t, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(Shapes, NormGradient,
                         testing::Values(std::pair{1, 1}, std::pair{1, 64}, std::pair{3, 17},
                                         std::pair{65, 256}, std::pair{300, 33}, std::pair{0, 8}));

TEST_P(NormGradient, IsThatOfFloat64) {
  const auto [rows, width] = GetParam();
  at::manual_seed(2);
  const Operation norm = [](Backend backend, const Tensors& in) -> Tensors {
    return {rms_norm(backend, in[0], in[1], eps)};
  };
  const Tensors in{random({rows, width}), random({width})};
  expect_as_in_float64(norm, in, norm_bound(rows, width), 1);
  expect_same_bits_for_all_thread_counts(norm, in);
}

TEST_P(NormGradient, BehindAResidualConnectionIsThatOfFloat64) {
  const auto [rows, width] = GetParam();
  at::manual_seed(3);
  const Operation norm = [](Backend backend, const Tensors& in) -> Tensors {
    const auto [sum, normed] = add_rms_norm(backend, in[0], in[1], in[2], eps);
    return {sum, normed};
  };
  const Tensors in{random({rows, width}), random({rows, width}), random({width})};
  expect_as_in_float64(norm, in, norm_bound(rows, width), 1);
  expect_same_bits_for_all_thread_counts(norm, in);
}

TEST(AddRmsNorm, TakesTheGradientOfEitherResultAlone) {
  for (const std::size_t used : {0, 1}) {
    const Operation norm = [used](Backend backend, const Tensors& in) -> Tensors {
      const auto [sum, normed] = add_rms_norm(backend, in[0], in[1], in[2], eps);
      return {used == 0 ? sum : normed};
    };
    expect_as_in_float64(norm, {random({5, 12}), random({5, 12}), random({12})}, norm_bound(5, 12));
  }
}

TEST(RmsNorm, UsesItsEps) {
  const at::Tensor x = random({2, 8}) * 1e-3, weight = at::ones({8});
  EXPECT_FALSE(
      at::allclose(rms_norm(Backend::cpu, x, weight, 1e-3), rms_norm(Backend::cpu, x, weight, 1e-9)));
}

TEST(RmsNorm, NamesShapesThatDoNotFit) {
  EXPECT_THROW(rms_norm(Backend::cpu, random({2, 8}), random({7}), eps), c10::Error);
  EXPECT_THROW(add_rms_norm(Backend::cpu, random({2, 8}), random({3, 8}), random({8}), eps), c10::Error);
}

TEST(Swiglu, GradientIsThatOfFloat64) {
  const Operation operation = [](Backend backend, const Tensors& in) -> Tensors {
    return {swiglu(backend, in[0], in[1])};
  };
  for (const std::int64_t count : {0, 1, 15, 16, 1000, 40001}) {
    const Tensors in{random({count}) * 5, random({count})};
    // some ten roundings, and the exponential's 2e-7
    expect_as_in_float64(operation, in, 20 * float_rounding);
    expect_same_bits_for_all_thread_counts(operation, in);
  }
}

TEST(Swiglu, StaysFiniteFarOut) {
  const at::Tensor far = at::tensor({-1e30F, -200.0F, -88.0F, 88.0F, 200.0F, 1e30F});
  const Operation operation = [](Backend backend, const Tensors& in) -> Tensors {
    return {swiglu(backend, in[0], in[1])};
  };
  const Pass pass = run(Backend::cpu, at::kFloat, operation, {far, at::ones({6})});
  EXPECT_TRUE(at::isfinite(pass.gradients[0]).all().item<bool>());
  EXPECT_TRUE(at::equal(pass.outputs[0].narrow(0, 3, 3), far.narrow(0, 3, 3)));
  EXPECT_LE(pass.outputs[0].narrow(0, 0, 3).abs().max().item<float>(), 1e-7F);
  const at::Tensor nan = at::full({3}, std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(at::isnan(swiglu(Backend::cpu, nan, at::ones({3}))).all().item<bool>());
}

TEST(Rope, GradientIsThatOfFloat64) {
  for (const auto& [batch, positions, heads, width] :
       {std::tuple{1, 1, 1, 2}, std::tuple{2, 37, 3, 16}, std::tuple{3, 5, 2, 64}}) {
    const RopeTable table = rope_table(positions + 2, {width, 10000.0}, at::kCPU);
    const Operation operation = [&](Backend backend, const Tensors& in) -> Tensors {
      return {rope(backend, in[0], table)};
    };
    const Tensors in{random({batch, positions, heads, width})};
    expect_as_in_float64(operation, in, 4 * float_rounding);
    expect_same_bits_for_all_thread_counts(operation, in);
  }
}

TEST(Rope, RotatesAsTheModelsDo) {
  const RopeTable table = rope_table(9, {8, 10000.0}, at::kCPU);
  const at::Tensor x = random({2, 9, 3, 8});
  const at::Tensor as_tokens = apply_rope(x.reshape({18, 3, 8}), table, at::arange(18) % 9);
  EXPECT_TRUE(at::allclose(rope(Backend::cpu, x, table).reshape({18, 3, 8}), as_tokens, 1e-6, 1e-6));
}

TEST(Rope, NamesATableThatIsTooShort) {
  EXPECT_THROW(rope(Backend::cpu, random({1, 5, 2, 8}), rope_table(4, {8, 10000.0}, at::kCPU)), c10::Error);
}

TEST(Embedding, GradientAddsUpInOrder) {
  for (const std::int64_t count : {0, 1, 7, 500}) {
    const at::Tensor ids = at::randint(0, 70, {count}, at::TensorOptions(at::kLong));
    const Operation operation = [&](Backend backend, const Tensors& in) -> Tensors {
      return {embedding(backend, in[0], ids)};
    };
    const Tensors in{random({70, 19})};
    // at most `count` terms, fewer roundings than that
    expect_as_in_float64(operation, in, static_cast<double>(count + 1) * float_rounding);
    expect_same_bits_for_all_thread_counts(operation, in);
  }
}

TEST(Embedding, NamesAnIdThatIsNoRow) {
  for (const std::int64_t id : {-1, 4})
    EXPECT_THROW(embedding(Backend::cpu, random({4, 2}), at::full({1}, id, at::TensorOptions(at::kLong))),
                 c10::Error);
}

}  // namespace
}  // namespace sinkscope
