// Products of packed weights, through project(), against float64.
#include "ops/linear.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <omp.h>
#include <sinkscope/error.h>

#include <limits>

#include "ops/projection.h"
#include "ops/projection_fixture.h"
#include "support/golden.h"

namespace sinkscope {
namespace {

using testing::near;

at::Tensor multiply(const Linear& linear, const at::Tensor& x, const std::vector<std::int64_t>& offsets) {
  at::Tensor result = testing::room_for(linear, x.size(0));
  project({{&linear, &result}}, testing::input_for(linear, x), plan_rows(offsets));
  return result;
}

// (rows per sequence, in, out): one row, odd sizes, more than one slice, more than one piece and group
struct Shape {
  std::vector<std::int64_t> lengths;
  std::int64_t in, out;
};
const std::vector<Shape> shapes{{{1}, 1, 1},
                                {{3}, 7, 5},
                                {{33, 1, 12}, 64, 160},
                                {{5}, 160, 64},
                                {{20}, 96, 2100},
                                {{900, 700, 3}, 24, 65},
                                {{0, 4}, 8, 9},
                                {{1, 2, 3, 4, 5}, 128, 300}};

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
    const at::Tensor y = multiply({Backend::cpu, weight, {}}, x, offsets);
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
    const at::Tensor y = multiply({Backend::cpu, weight, {.dtype = at::kBFloat16}}, x, offsets);
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
    EXPECT_TRUE(near(multiply({Backend::cpu, weight, {}}, x, offsets), expected, 1e-5));
    EXPECT_TRUE(near(multiply({Backend::aten, weight, {}}, x, offsets), expected, 1e-5));
  }
}

// The program works in inference mode, whose tensors other threads may not write without it.
TEST(Linear, LoadsInInferenceModeOnAllThreads) {
  const c10::InferenceMode no_autograd;
  for (const bool int8 : {false, true}) {
    const at::Tensor weight = at::randn({600, 16}).to(at::kBFloat16);
    EXPECT_NO_THROW(Linear(Backend::cpu, weight, {.int8 = int8}));
  }
}

// The integers that the documentation promises, by plain arithmetic.
struct Int8Weight {
  at::Tensor integers;  // float64 [out, in]
  at::Tensor scale;     // float64 [out]
};
Int8Weight quantise_plainly(const at::Tensor& weight) {
  const at::Tensor scale = at::amax(weight.abs(), {1}) / 127;
  const at::Tensor inverse = 127 / at::amax(weight.abs(), {1}, true);
  return {at::round(weight * inverse).to(at::kDouble), scale.to(at::kDouble)};
}

TEST(Linear, Int8SumsAreExact) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
    for (const Shape& shape : shapes) {
      const std::vector<std::int64_t> offsets = offsets_of(shape);
      const at::Tensor x = at::randn({offsets.back(), shape.in}).to(dtype);
      const at::Tensor weight = at::randn({shape.out, shape.in});
      const Linear linear(Backend::cpu, weight, {.dtype = dtype, .int8 = true});
      const ProductInput input = testing::input_for(linear, x);
      at::Tensor y = testing::room_for(linear, offsets.back());
      project({{&linear, &y}}, input, plan_rows(offsets));
      const Int8Weight integers = quantise_plainly(weight);
      const at::Tensor centred = input.values.to(at::kDouble) - input.zero.unsqueeze(1).to(at::kDouble);
      const at::Tensor exact = at::matmul(centred, integers.integers.t()) *
                               input.scale.unsqueeze(1).to(at::kDouble) * integers.scale;
      // The sum is an integer and exact; its conversion, two scales, and their products are rounded, and the
      // result is cast.
      const double relative = dtype == at::kFloat ? 6 * std::exp2(-24) : std::exp2(-8) + 6 * std::exp2(-24);
      EXPECT_TRUE(near(y, exact, 1e-30, relative)) << shape.in << "x" << shape.out;
    }
}

TEST(Linear, Int8IsWithinHalfAStepOfEveryFactor) {
  const at::Tensor x = at::randn({40, 300}), weight = at::randn({70, 300});
  const at::Tensor exact = at::matmul(x.to(at::kDouble), weight.to(at::kDouble).t());
  const at::Tensor y = multiply({Backend::cpu, weight, {.int8 = true}}, x, {0, 40});
  const at::Tensor weight_step = at::amax(weight.abs(), {1}) / 127;
  const at::Tensor x_step =
      (at::clamp_min(at::amax(x, {1}), 0) - at::clamp_max(at::amin(x, {1}), 0)) / quantised_levels();
  // |x w - x' w'| <= |x| dw + |w| dx + dx dw with half a step each; the zero's own rounding may move an end
  // of the range by another half step.
  const at::Tensor bound = 0.5 * x.abs().sum(1, true) * weight_step +
                           x_step.unsqueeze(1) * weight.abs().sum(1) +
                           0.5 * 300 * x_step.unsqueeze(1) * weight_step;
  EXPECT_TRUE(((y - exact).abs() <= bound).all().item<bool>());
  EXPECT_GT((y - exact).abs().max().item<double>(), 1e-3);  // it is quantised indeed
}

TEST(Linear, Int8TakesZerosAndRefusesWhatIsNotFinite) {
  const at::Tensor x = at::randn({3, 8});
  EXPECT_TRUE(
      at::equal(multiply({Backend::cpu, at::zeros({5, 8}), {.int8 = true}}, x, {0, 3}), at::zeros({3, 5})));
  at::Tensor weight = at::randn({5, 8});
  weight[2][3] = std::numeric_limits<float>::infinity();
  EXPECT_THROW(Linear(Backend::cpu, weight, {.int8 = true}), Error);
}

TEST(Linear, BitsDependNeitherOnThreadsNorOnTheBatch) {
  const int before = omp_get_max_threads();
  for (const bool int8 : {false, true})
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
      const at::Tensor weight = at::randn({200, 70}).to(type);
      const at::Tensor x = at::randn({50, 70}).to(type);
      const Linear linear(Backend::cpu, weight, {.dtype = type, .int8 = int8});
      omp_set_num_threads(1);
      const at::Tensor one = multiply(linear, x, {0, 20, 50});
      for (const int threads : {2, 3}) {
        omp_set_num_threads(threads);
        EXPECT_TRUE(at::equal(one, multiply(linear, x, {0, 20, 50})));
      }
      EXPECT_TRUE(
          at::equal(one.narrow(0, 20, 30), multiply(linear, x.narrow(0, 20, 30).contiguous(), {0, 30})));
    }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace sinkscope
