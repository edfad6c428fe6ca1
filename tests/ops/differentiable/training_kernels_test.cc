// Every instruction set's copy of the kernels against the same formulas in float64.
#include "ops/differentiable/training_kernels.h"

#include <cmath>
#include <cstring>

#include "passes.h"

namespace sinkscope {
namespace {

constexpr std::int64_t counts[] = {0, 1, 3, 4, 8, 15, 16, 17, 31, 64, 100};

float widened(float value) { return value; }
float widened(Bfloat16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float wide;
  std::memcpy(&wide, &bits, sizeof wide);
  return wide;
}

template <typename T>
class TrainingKernelsOf : public testing::Test {};
using FactorTypes = testing::Types<float, Bfloat16>;
TYPED_TEST_SUITE(TrainingKernelsOf, FactorTypes);

template <typename T>
double rounding_of() {
  return sizeof(T) == 2 ? bfloat_rounding : float_rounding;
}

TYPED_TEST(TrainingKernelsOf, ConvertAndScaleRoundOnce) {
  for (const TrainingKernels* level : available_training_kernels())
    for (const std::int64_t count : counts) {
      const at::Tensor x = random({count + 1});
      std::vector<TypeParam> same(count + 1), scaled(count + 1);
      scaled[count] = TypeParam{};
      factor_kernels<TypeParam>(*level).convert(x.data_ptr<float>(), same.data(), count);
      factor_kernels<TypeParam>(*level).scale(x.data_ptr<float>(), 0.7F, scaled.data(), count);
      for (std::int64_t i = 0; i < count; ++i) {
        const double value = x.data_ptr<float>()[i];
        const double bound = std::abs(value) * rounding_of<TypeParam>();
        EXPECT_NEAR(widened(same[i]), value, sizeof(TypeParam) == 2 ? bound : 0) << level->name;
        EXPECT_NEAR(widened(scaled[i]), value * 0.7F, 2 * bound) << level->name;
      }
      EXPECT_EQ(widened(scaled[count]), 0) << level->name << ": wrote behind the end";
    }
}

TYPED_TEST(TrainingKernelsOf, ExponentialsAndTheirSum) {
  for (const TrainingKernels* level : available_training_kernels())
    for (const std::int64_t count : counts) {
      const at::Tensor x = random({count}) * 10;
      std::vector<TypeParam> e(count);
      const float max = level->maximum(x.data_ptr<float>(), count);
      const float sum =
          factor_kernels<TypeParam>(*level).exponentials(x.data_ptr<float>(), max, 0.5F, e.data(), count);
      double expected = 0;
      for (std::int64_t i = 0; i < count; ++i) {
        const double exact = std::exp(0.5 * (static_cast<double>(x.data_ptr<float>()[i]) - max));
        expected += exact;
        // the argument's rounding is magnified by its size, at most some tens
        EXPECT_NEAR(widened(e[i]), exact, exact * (rounding_of<TypeParam>() + 1e-5)) << level->name;
      }
      EXPECT_NEAR(sum, expected, 1e-5 * expected) << level->name;
    }
}

TYPED_TEST(TrainingKernelsOf, LetNaNThroughAndVanishAtMinusInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float x[] = {-infinity, 0.0F, std::numeric_limits<float>::quiet_NaN()};
  for (const TrainingKernels* level : available_training_kernels()) {
    TypeParam e[3];
    EXPECT_EQ(level->maximum(x, 3), 0);
    EXPECT_EQ(level->maximum(x, 1), -infinity);
    EXPECT_TRUE(std::isnan(factor_kernels<TypeParam>(*level).exponentials(x, 0, 1, e, 3))) << level->name;
    EXPECT_EQ(widened(e[0]), 0);
    EXPECT_EQ(widened(e[1]), 1);
    EXPECT_TRUE(std::isnan(widened(e[2]))) << level->name;
  }
}

TYPED_TEST(TrainingKernelsOf, AttentionGradient) {
  for (const TrainingKernels* level : available_training_kernels())
    for (const std::int64_t count : counts) {
      const at::Tensor s = random({count}) * 5, dp = random({count});
      std::vector<TypeParam> p(count), ds(count);
      factor_kernels<TypeParam>(*level).attention_gradient(s.data_ptr<float>(), dp.data_ptr<float>(), 0.3F,
                                                           1.5F, 0.25F, p.data(), ds.data(), count);
      for (std::int64_t i = 0; i < count; ++i) {
        const double exact = std::exp(static_cast<double>(0.3F) * s.data_ptr<float>()[i] - 1.5);
        const double gradient = exact * (dp.data_ptr<float>()[i] - 0.25) * 0.3F;
        const double relative = rounding_of<TypeParam>() + 5e-6;
        EXPECT_NEAR(widened(p[i]), exact, exact * relative) << level->name;
        EXPECT_NEAR(widened(ds[i]), gradient, std::abs(gradient) * relative + 1e-6 * exact) << level->name;
      }
    }
}

TEST(TrainingKernels, SumsAndProducts) {
  for (const TrainingKernels* level : available_training_kernels())
    for (const std::int64_t count : counts) {
      const at::Tensor a = random({count}), b = random({count});
      const double bound = static_cast<double>(count + 1) * 10 * float_rounding;
      EXPECT_NEAR(level->dot(a.data_ptr<float>(), b.data_ptr<float>(), count),
                  (a * b).to(at::kDouble).sum().item<double>(), bound);
      const at::Tensor wide = a.to(at::kDouble);
      EXPECT_NEAR(level->sum_of_squares(a.data_ptr<float>(), count), (wide * wide).sum().item<double>(),
                  1e-12);
    }
}

TEST(TrainingKernels, TheChosenOneIsThatOfTheOtherKernels) {
  EXPECT_EQ(training_kernels().name, cpu_kernels().name);
  EXPECT_EQ(available_training_kernels().size(), available_cpu_kernels().size());
}

}  // namespace
}  // namespace sinkscope
