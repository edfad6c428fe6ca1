#include "ops/linear.h"

#include <ATen/ATen.h>
#include <omp.h>

#include "ops/elementwise.h"
#include "ops/rms_norm.h"
#include "ops/rope.h"
#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

// (rows per sequence, in, out): one row, odd sizes, more than one slice, more than one group of sequences
struct Shape {
  std::vector<std::int64_t> lengths;
  std::int64_t in, out;
};
const std::vector<Shape> shapes{{{1}, 1, 1},    {{3}, 7, 5},      {{33, 1, 12}, 64, 160},
                                {{5}, 160, 64}, {{20}, 96, 2100}, {{900, 700, 3}, 24, 65},
                                {{0, 4}, 8, 9}};

std::vector<std::int64_t> offsets_of(const Shape& shape) {
  std::vector<std::int64_t> offsets{0};
  for (const std::int64_t length : shape.lengths) offsets.push_back(offsets.back() + length);
  return offsets;
}

TEST(Linear, EqualsTheProductInFloat64) {
  for (const Shape& shape : shapes) {
    const std::vector<std::int64_t> offsets = offsets_of(shape);
    const at::Tensor x = at::randn({offsets.back(), shape.in});
    const at::Tensor weight = at::randn({shape.out, shape.in});
    const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
    const at::Tensor size = at::matmul(x.abs().to(at::kDouble), weight.abs().to(at::kDouble).t());
    const at::Tensor y = Linear(Backend::cpu, weight, at::kFloat, at::kCPU)(x, offsets);
    // |error| <= in * 2^-24 * sum |x w| for any order of the sum
    EXPECT_TRUE(
        ((y - exact).abs() <= size * (static_cast<double>(shape.in) * 6e-8 + 1e-12)).all().item<bool>())
        << shape.in << "x" << shape.out;
  }
}

TEST(Linear, Bfloat16IsTheFloat32ProductRoundedOnce) {
  for (const Shape& shape : shapes) {
    const std::vector<std::int64_t> offsets = offsets_of(shape);
    const at::Tensor x = at::randn({offsets.back(), shape.in}).to(at::kBFloat16);
    const at::Tensor weight = at::randn({shape.out, shape.in}).to(at::kBFloat16);
    const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
    const at::Tensor size = at::matmul(x.abs().to(at::kDouble), weight.abs().to(at::kDouble).t());
    const at::Tensor y = Linear(Backend::cpu, weight, at::kBFloat16, at::kCPU)(x, offsets);
    ASSERT_EQ(y.scalar_type(), at::kBFloat16);
    const at::Tensor bound =
        exact.abs() * std::exp2(-8) + size * (static_cast<double>(shape.in) * 6e-8) + 1e-12;
    EXPECT_TRUE(((y.to(at::kDouble) - exact).abs() <= bound).all().item<bool>())
        << shape.in << "x" << shape.out;
  }
}

TEST(Linear, StoredTypesAreConverted) {
  const std::vector<std::int64_t> offsets{0, 4};
  const at::Tensor x = at::randn({4, 16});
  for (const at::ScalarType stored : {at::kFloat, at::kHalf, at::kBFloat16}) {
    const at::Tensor weight = at::randn({6, 16}).to(stored);
    const at::Tensor expected = at::linear(x, weight.to(at::kFloat));
    EXPECT_TRUE(near(Linear(Backend::cpu, weight, at::kFloat, at::kCPU)(x, offsets), expected, 1e-5));
    EXPECT_TRUE(near(Linear(Backend::aten, weight, at::kFloat, at::kCPU)(x, offsets), expected, 1e-5));
  }
}

TEST(Linear, BitsDependNeitherOnThreadsNorOnTheBatch) {
  const int before = omp_get_max_threads();
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = at::randn({200, 70}).to(type);
    const at::Tensor x = at::randn({50, 70}).to(type);
    const Linear linear(Backend::cpu, weight, type, at::kCPU);
    omp_set_num_threads(1);
    const at::Tensor one = linear(x, std::vector<std::int64_t>{0, 20, 50});
    for (const int threads : {2, 3}) {
      omp_set_num_threads(threads);
      EXPECT_TRUE(at::equal(one, linear(x, std::vector<std::int64_t>{0, 20, 50})));
    }
    EXPECT_TRUE(at::equal(one.narrow(0, 20, 30),
                          linear(x.narrow(0, 20, 30).contiguous(), std::vector<std::int64_t>{0, 30})));
  }
  omp_set_num_threads(before);
}

// The kernels against libtorch's operations, which are the CUDA path.
TEST(Elementwise, KernelsEqualThePlainOperations) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // one unit in the last place of bfloat16 where a value lies at a rounding boundary
    const double relative = type == at::kFloat ? 1e-6 : std::exp2(-7);
    const at::Tensor x = at::randn({37, 48}).to(type);
    const at::Tensor weight = at::randn({48}).to(type);
    EXPECT_TRUE(near(rms_norm(Backend::cpu, x, weight, 1e-5), rms_norm(Backend::aten, x, weight, 1e-5), 1e-6,
                     relative));
    const at::Tensor up = at::randn({37, 48}).to(type);
    EXPECT_TRUE(near(silu_multiply(Backend::cpu, x.clone(), up), silu_multiply(Backend::aten, x.clone(), up),
                     1e-6, 2 * relative));  // SiLU and product are rounded one after the other
    EXPECT_TRUE(near(l2_norm(Backend::cpu, x), l2_norm(Backend::aten, x), 1e-6, 1e-6));
    at::Tensor sum = x.clone(), plain_sum = x.clone();
    add_in_place(Backend::cpu, sum, up);
    add_in_place(Backend::aten, plain_sum, up);
    EXPECT_TRUE(at::equal(sum, plain_sum));
    at::Tensor turned = x.clone().view({37, 4, 12}), plain_turned = turned.clone();
    const RopeTable table = rope_table(40, 12, 500000.0, at::kCPU);
    const at::Tensor positions = at::arange(37);
    apply_rope(Backend::cpu, turned, table, positions);
    apply_rope(Backend::aten, plain_turned, table, positions);
    EXPECT_TRUE(near(turned, plain_turned, 1e-6, relative));
  }
}

TEST(Rope, PositionZeroTurnsNothingAndLengthsStay) {
  at::Tensor x = at::randn({3, 2, 8});
  const at::Tensor before = x.clone();
  apply_rope(Backend::cpu, x, rope_table(3, 8, 10000.0, at::kCPU), at::arange(3));
  EXPECT_TRUE(at::equal(x[0], before[0]));
  EXPECT_FALSE(at::equal(x[1], before[1]));
  EXPECT_TRUE(near(x.norm(2, -1), before.norm(2, -1), 1e-5));
}

}  // namespace
}  // namespace sinkscope
