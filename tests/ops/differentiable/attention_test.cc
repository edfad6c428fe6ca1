#include "ops/differentiable/attention.h"

#include "passes.h"

namespace sinkscope {
namespace {

struct Case {
  std::int64_t batch, positions, heads, key_heads, width;
  AttentionMask mask = {};
  double scale = 0.3;

  Tensors inputs() const {
    at::manual_seed(4);
    return {random({batch, positions, heads, width}), random({batch, positions, key_heads, width}),
            random({batch, positions, key_heads, width})};
  }
  Operation operation(ProductPrecision precision) const {
    return [*this, precision](Backend backend, const Tensors& in) -> Tensors {
      return {attention(backend, in[0], in[1], in[2], scale, mask, precision)};
    };
  }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.batch << " x " << c.positions << ", " << c.heads << "/" << c.key_heads << " heads of " << c.width
       << (c.mask.causal ? ", causal" : "") << ", prefix " << c.mask.prefix << ", window " << c.mask.window;
}

class AttentionGradient : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Cases, AttentionGradient,
    testing::Values(Case{1, 1, 1, 1, 4}, Case{2, 1, 4, 2, 8, {true}}, Case{2, 7, 3, 1, 5},
                    Case{1, 130, 2, 2, 16}, Case{1, 257, 2, 1, 8, {true}}, Case{2, 33, 4, 2, 12, {true, 5}},
                    Case{1, 300, 1, 1, 8, {true, 140}}, Case{1, 40, 2, 1, 8, {true, 50}},
                    Case{1, 270, 2, 2, 8, {true, 0, 9}}, Case{1, 20, 2, 2, 8, {true, 0, 1}},
                    Case{1, 400, 1, 1, 8, {true, 3, 20}}, Case{1, 400, 1, 1, 8, {true, 20, 130}},
                    Case{1, 1100, 1, 1, 8, {true, 0, 300}}, Case{1, 1100, 2, 1, 4}));

// Scores have D terms and a size of some units, which the exponential turns into relative errors; sums over T
// keys or queries follow.
TEST_P(AttentionGradient, IsThatOfFloat64) {
  const Case& c = GetParam();
  expect_as_in_float64(c.operation(ProductPrecision::f32), c.inputs(),
                       static_cast<double>(c.positions + 10 * c.width + 20) * float_rounding, 1);
}

TEST_P(AttentionGradient, HasTheSameBitsForAllThreadCounts) {
  for (const auto precision : {ProductPrecision::f32, ProductPrecision::bf16})
    expect_same_bits_for_all_thread_counts(GetParam().operation(precision), GetParam().inputs());
}

// [B, T, heads, D] -> [B, H, T, D] in float64, key heads repeated
at::Tensor heads_first(const at::Tensor& x, std::int64_t heads) {
  return x.to(at::kDouble).transpose(1, 2).repeat_interleave(heads / x.size(2), 1);
}

// What rounding P, dO and dS to bfloat16 can do to the results, to first order, from the exact ones; a part
// in four more covers the higher orders and float32.
struct RoundingBounds {
  at::Tensor output, q, k, v;  // [B, H, T, D]
};
RoundingBounds rounding_bounds(const Case& c, const Tensors& in, const at::Tensor& output_gradient) {
  const double u = 1.25 * bfloat_rounding;
  const at::Tensor q = heads_first(in[0], c.heads), k = heads_first(in[1], c.heads),
                   v = heads_first(in[2], c.heads), d = heads_first(output_gradient, c.heads);
  const at::Tensor key = at::arange(c.positions), query = key.unsqueeze(1);
  at::Tensor hidden = key > query;
  if (c.mask.window > 0) hidden = hidden.logical_or(key <= query - c.mask.window);
  hidden = hidden.logical_and(key >= c.mask.prefix);
  at::Tensor scores = at::matmul(q, k.transpose(2, 3)) * c.scale;
  if (c.mask.causal) scores = scores.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  const at::Tensor p = at::softmax(scores, -1);
  const at::Tensor weighed = at::matmul(p, v.abs());  // |O| <= this
  const at::Tensor dp = at::matmul(d, v.transpose(2, 3));
  const at::Tensor delta = (d * at::matmul(p, v)).sum(-1, true);
  const at::Tensor error_of_dp = at::matmul(d.abs(), v.abs().transpose(2, 3)) * u;
  const at::Tensor error_of_delta = (d.abs() * weighed).sum(-1, true) * u;
  const at::Tensor ds = p * (dp - delta).abs() * c.scale;
  const at::Tensor error_of_ds = p * (error_of_dp + error_of_delta) * c.scale + ds * u;
  return {weighed * u, at::matmul(error_of_ds, k.abs()), at::matmul(error_of_ds.transpose(2, 3), q.abs()),
          at::matmul(p.transpose(2, 3), d.abs()) * (2 * u)};
}

at::Tensor summed_over_groups(const at::Tensor& x, std::int64_t key_heads) {  // [B, H, T, D] -> [B, T, KV, D]
  return x.reshape({x.size(0), key_heads, x.size(1) / key_heads, x.size(2), x.size(3)})
      .sum(2)
      .transpose(1, 2);
}

TEST_P(AttentionGradient, InBfloat16IsWithinTheRoundings) {
  const Case& c = GetParam();
  Tensors in = c.inputs();
  const Pass actual = run(Backend::cpu, at::kFloat, c.operation(ProductPrecision::bf16), in);
  for (at::Tensor& factor : in) factor = rounded(factor);
  const Pass exact = run(Backend::aten, at::kDouble, c.operation(ProductPrecision::f32), in);
  const RoundingBounds bounds = rounding_bounds(c, in, output_gradients(exact.outputs)[0]);
  const double floor = 1e-4;  // float32's own share
  expect_within(actual.outputs[0], exact.outputs[0], bounds.output.transpose(1, 2) + floor, "output");
  expect_within(actual.gradients[0], exact.gradients[0], bounds.q.transpose(1, 2) + floor, "dq");
  expect_within(actual.gradients[1], exact.gradients[1], summed_over_groups(bounds.k, c.key_heads) + floor,
                "dk");
  expect_within(actual.gradients[2], exact.gradients[2], summed_over_groups(bounds.v, c.key_heads) + floor,
                "dv");
}

TEST(AttentionSlope, IsWhatTheGradientsSay) {
  for (const Case& c :
       {Case{2, 19, 4, 2, 8}, Case{1, 150, 2, 1, 8, {true}}, Case{1, 31, 2, 2, 6, {true, 4, 6}}})
    expect_slope(c.operation(ProductPrecision::f32), c.inputs(), 1e-2, 1e-3);
}

TEST(Attention, SaysWhatDoesNotFit) {
  const auto attend = [](const at::Tensor& q, const at::Tensor& k, double scale, const AttentionMask& mask) {
    return attention(Backend::cpu, q, k, k, scale, mask, ProductPrecision::f32);
  };
  const at::Tensor q = random({1, 4, 3, 8}), k = random({1, 4, 2, 8});
  EXPECT_THROW(attend(q, k, 1, {}), c10::Error);                     // 3 heads on 2
  EXPECT_THROW(attend(q, random({1, 5, 3, 8}), 1, {}), c10::Error);  // other positions
  EXPECT_THROW(attend(q, q, 0, {}), c10::Error);
  EXPECT_THROW(attend(q, q, 1, {false, 2}), c10::Error);  // a prefix of a bidirectional mask
  EXPECT_THROW(attend(q, q, 1, {false, 0, 2}), c10::Error);
  EXPECT_THROW(attend(q, q, 1, {true, -1}), c10::Error);
}

}  // namespace
}  // namespace sinkscope
