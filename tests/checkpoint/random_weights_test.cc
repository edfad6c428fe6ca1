#include "checkpoint/random_weights.h"

#include <cmath>
#include <cstring>

#include "base/half.h"
#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

const RandomTensor weight{"some.weight", {300, 1000}, 0, 0.02};
constexpr std::size_t elements = 300'000;

template <typename T>
std::vector<T> filled(const RandomTensor& tensor, std::uint64_t seed, DType dtype, std::uint64_t first = 0,
                      std::size_t count = elements) {
  std::vector<T> values(count);
  fill_random(tensor, seed, first, dtype, std::as_writable_bytes(std::span(values)));
  return values;
}

TEST(RandomWeightsTest, MomentsAreThoseOfTheNormalNearly) {
  const std::vector<float> values = filled<float>(weight, 1, DType::f32);
  double sum = 0, squares = 0, within = 0, largest = 0;
  for (const float value : values) {
    const double z = static_cast<double>(value) / weight.deviation;
    sum += z;
    squares += z * z;
    within += std::abs(z) < 1 ? 1 : 0;
    largest = std::max(largest, std::abs(z));
  }
  const double n = elements;
  // Four standard errors: 1 / sqrt(n) of the mean; sqrt((kurtosis - 1) / n), kurtosis 2.7, of the variance.
  EXPECT_NEAR(sum / n, 0, 4 / std::sqrt(n));
  EXPECT_NEAR(squares / n, 1, 4 * std::sqrt(1.7 / n));
  EXPECT_NEAR(within / n, 0.67, 0.01);  // the normal's 0.683, the sum of four uniforms' 0.669
  EXPECT_LT(largest, 3.5);
  EXPECT_GT(largest, 3.0);
}

TEST(RandomWeightsTest, AnElementDependsOnNothingButSeedNameAndIndex) {
  const std::vector<float> whole = filled<float>(weight, 7, DType::f32);
  const std::vector<float> part = filled<float>(weight, 7, DType::f32, 12345, 100);
  EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + 12345));
  EXPECT_NE(filled<float>(weight, 8, DType::f32), whole);
  EXPECT_NE(filled<float>({"other.weight", {300, 1000}, 0, 0.02}, 7, DType::f32), whole);
}

TEST(RandomWeightsTest, NarrowTypesRoundTheSameNumbers) {
  const std::vector<float> wide = filled<float>(weight, 3, DType::f32);
  const auto bfloats = filled<std::uint16_t>(weight, 3, DType::bf16);
  const auto halves = filled<std::uint16_t>(weight, 3, DType::f16);
  for (std::size_t i = 0; i < elements; ++i) {
    const std::uint32_t bits = std::uint32_t{bfloats[i]} << 16;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    // half a unit in the last of 8 bits of significand
    ASSERT_LE(std::abs(value - wide[i]), std::abs(wide[i]) * 0x1p-8F) << i;
    ASSERT_EQ(halves[i], half_from_float(wide[i])) << i;
  }
}

TEST(RandomWeightsTest, WithoutDeviationEveryElementIsTheMean) {
  const auto ones = filled<float>({"norm.weight", {64}, 1, 0}, 3, DType::f32, 0, 64);
  EXPECT_EQ(ones, std::vector<float>(64, 1.0F));
}

TEST(RandomWeightsTest, OtherTypesAreRefused) {
  EXPECT_THAT(error_of([] { filled<float>(weight, 1, DType::i32); }), ::testing::HasSubstr("some.weight"));
}

}  // namespace
}  // namespace sinkscope
