// Every instruction set this processor runs, against plain float64 arithmetic.
#include "ops/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace sinkscope {
namespace {

std::vector<float> random_values(std::size_t count, float scale, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal(0, 1);
  std::vector<float> values(count);
  for (float& value : values) value = scale * normal(generator);
  return values;
}

float from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

// Lengths around the vector widths, and one beyond any of them.
const std::vector<std::int64_t> lengths{1, 2, 7, 15, 16, 17, 31, 33, 64, 100, 257};

class CpuKernelLevels : public ::testing::TestWithParam<const CpuKernels*> {
 protected:
  const CpuKernels& kernels = *GetParam();
};

INSTANTIATE_TEST_SUITE_P(Levels, CpuKernelLevels, ::testing::ValuesIn(available_cpu_kernels()),
                         [](const auto& level) { return std::string(level.param->name); });

TEST_P(CpuKernelLevels, RmsNormDividesByTheRootMeanSquare) {
  for (const std::int64_t width : lengths) {
    const std::vector<float> x = random_values(static_cast<std::size_t>(width), 3, 1);
    const std::vector<float> weight = random_values(static_cast<std::size_t>(width), 1, 2);
    std::vector<float> y(x.size());
    kernels.f32.rms_norm(x.data(), weight.data(), y.data(), width, 1e-5F);
    double squares = 0;
    for (const float value : x) squares += static_cast<double>(value) * value;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(width) + 1e-5);
    // A sum of n squares errs by at most n/16 + 5 roundings, the root by half of that; four more roundings
    // follow.
    const double bound = (static_cast<double>(width) / 32 + 8) * 6e-8;
    for (std::size_t i = 0; i < x.size(); ++i)
      ASSERT_NEAR(y[i], x[i] * scale * weight[i], bound * std::abs(x[i] * scale * weight[i]) + 1e-30)
          << width;
  }
}

TEST_P(CpuKernelLevels, RotateTurnsPairsOfHalves) {
  const std::int64_t half = 9;
  std::vector<float> x = random_values(3 * 2 * half, 1, 3);
  const std::vector<float> before = x;
  std::vector<float> cosine(half), sine(half);
  for (std::int64_t i = 0; i < half; ++i) {
    cosine[i] = std::cos(0.3F * static_cast<float>(i));
    sine[i] = std::sin(0.3F * static_cast<float>(i));
  }
  kernels.f32.rotate(x.data(), cosine.data(), sine.data(), 3, half);
  for (std::int64_t h = 0; h < 3; ++h)
    for (std::int64_t i = 0; i < half; ++i) {
      const double a = before[h * 2 * half + i], b = before[h * 2 * half + half + i];
      EXPECT_NEAR(x[h * 2 * half + i], a * cosine[i] - b * sine[i], 5e-7);
      EXPECT_NEAR(x[h * 2 * half + half + i], b * cosine[i] + a * sine[i], 5e-7);
    }
}

TEST_P(CpuKernelLevels, SiluHoldsFromOneEndOfFloatToTheOther) {
  std::vector<float> gate{-1e30F, -200, -88, -20, -1, -0.0F, 0, 1e-6F, 1, 20, 100, 1e30F};
  const std::vector<float> before = gate;
  const std::vector<float> up(gate.size(), 2);
  kernels.f32.silu_multiply(gate.data(), up.data(), gate.data(), static_cast<std::int64_t>(gate.size()));
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const double expected = 2.0 * before[i] / (1 + std::exp(-static_cast<double>(before[i])));
    EXPECT_NEAR(gate[i], expected, 1e-6 * std::abs(expected) + 1e-30) << before[i];
  }
}

TEST_P(CpuKernelLevels, NarrowRoundsToTheNearestBfloat16TiesToEven) {
  const std::vector<std::pair<std::uint32_t, std::uint16_t>> table{
      {0x3F800000, 0x3F80}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x3F808001, 0x3F81},
      {0x80000000, 0x8000}, {0x7F800000, 0x7F80}, {0xFF800000, 0xFF80}, {0x7F7FFFFF, 0x7F80},
      {0x00000001, 0x0000}, {0x00008001, 0x0001}};
  for (const auto& [bits, expected] : table) {
    const float value = from_bits(bits);
    Bfloat16 stored;
    kernels.bf16.narrow(&value, &stored, 1);
    EXPECT_EQ(stored.bits, expected) << std::hex << bits;
  }
  const float nan = from_bits(0x7F800001);
  Bfloat16 stored;
  float back = 0;
  kernels.bf16.narrow(&nan, &stored, 1);
  kernels.bf16.widen(&stored, &back, 1);
  EXPECT_TRUE(std::isnan(back));
}

TEST_P(CpuKernelLevels, VocabularyRowFindsTheFirstMaximumAndItsProbability) {
  std::vector<float> logits = random_values(1000, 5, 6);
  logits[17] = logits[400] = 40;
  double sum = 0;
  for (const float l : logits) sum += std::exp(static_cast<double>(l) - 40);
  for (const bool in_float64 : {true, false}) {
    const VocabularyRow row = kernels.vocabulary_row(logits.data(), 1000, in_float64);
    EXPECT_EQ(row.argmax, 17);
    EXPECT_EQ(row.max, 40);
    EXPECT_NEAR(row.sum_exp, sum, in_float64 ? 1e-13 : 1e-6);
  }
}

TEST_P(CpuKernelLevels, LogitsThatAreNotFiniteCannotLookFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> logits(50, 1);
    logits[20] = bad;
    const VocabularyRow row = kernels.vocabulary_row(logits.data(), 50, true);
    EXPECT_FALSE(std::isfinite(row.sum_exp) && std::isfinite(row.max));
    EXPECT_FALSE(std::isfinite(kernels.vocabulary_row(logits.data(), 50, false).sum_exp) &&
                 std::isfinite(row.max))
        << bad;
  }
  std::vector<float> nothing(5, -std::numeric_limits<float>::infinity());
  EXPECT_EQ(kernels.vocabulary_row(nothing.data(), 5, true).sum_exp, 0);
  nothing[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(kernels.vocabulary_row(nothing.data(), 5, true).sum_exp));
}

TEST_P(CpuKernelLevels, ExponentialsInFloat64AreExactToTheLastBits) {
  for (double x = 0; x > -710; x -= 0.37) {
    const std::vector<float> logits{0, static_cast<float>(x)};
    const double exact = std::exp(static_cast<double>(logits[1]));
    ASSERT_NEAR(kernels.vocabulary_row(logits.data(), 2, true).sum_exp - 1, exact, 2.3e-16 + 1e-15 * exact)
        << x;
  }
}

TEST_P(CpuKernelLevels, QuantisedValuesAreWithinAStepAndZeroIsExact) {
  for (const int levels : {127, 255})
    for (const std::int64_t count : lengths) {
      std::vector<float> x = random_values(static_cast<std::size_t>(count), 3, 7);
      x[static_cast<std::size_t>(count / 2)] = 0;
      std::vector<std::uint8_t> y(x.size());
      float scale = 0;
      std::int32_t zero = -1;
      kernels.f32.quantise(x.data(), count, levels, y.data(), &scale, &zero);
      for (std::size_t i = 0; i < x.size(); ++i) {
        ASSERT_LE(y[i], levels);
        // half a step, and half a step more where the zero's rounding moved an end out of the range
        ASSERT_NEAR(scale * static_cast<float>(y[i] - zero), x[i], scale * 1.0001F) << count;
      }
      EXPECT_EQ(y[static_cast<std::size_t>(count / 2)], zero);
    }
}

TEST_P(CpuKernelLevels, QuantisingZerosOrWhatIsNotFiniteHidesNothing) {
  const std::vector<float> zeros(20, 0);
  std::vector<std::uint8_t> y(20, 9);
  float scale = 1;
  std::int32_t zero = 1;
  kernels.f32.quantise(zeros.data(), 20, 255, y.data(), &scale, &zero);
  EXPECT_EQ(scale * static_cast<float>(y[3] - zero), 0);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> x(20, 1);
    x[5] = bad;
    kernels.f32.quantise(x.data(), 20, 255, y.data(), &scale, &zero);
    EXPECT_FALSE(std::isfinite(scale));
  }
}

TEST_P(CpuKernelLevels, GuidanceCastsEachStep) {
  const std::vector<float> c = random_values(50, 3, 8), u = random_values(50, 3, 9);
  std::vector<float> y(50);
  kernels.f32.guide(c.data(), u.data(), 2.5F, y.data(), 50);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], u[i] + (c[i] - u[i]) * 2.5F, 3e-6);
  std::vector<Bfloat16> bc(50), bu(50), by(50);
  kernels.bf16.narrow(c.data(), bc.data(), 50);
  kernels.bf16.narrow(u.data(), bu.data(), 50);
  kernels.bf16.guide(bc.data(), bu.data(), 2.5F, by.data(), 50);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto through = [&](float value) {
      Bfloat16 stored;
      float back = 0;
      kernels.bf16.narrow(&value, &stored, 1);
      kernels.bf16.widen(&stored, &back, 1);
      return back;
    };
    const float difference = through(through(c[i]) - through(u[i]));
    EXPECT_EQ(from_bits(static_cast<std::uint32_t>(by[i].bits) << 16),
              through(through(u[i]) + through(difference * 2.5F)));
  }
}

}  // namespace
}  // namespace sinkscope
