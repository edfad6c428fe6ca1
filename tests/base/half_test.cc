#include "base/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace sinkscope {
namespace {

TEST(Half, EveryValueGoesThereAndBack) {
  for (std::uint32_t half = 0; half < 0x10000; ++half) {
    const float value = float_from_half(static_cast<std::uint16_t>(half));
    if (std::isnan(value))
      EXPECT_EQ(half_from_float(value), 0x7e00) << "one NaN for all";
    else
      EXPECT_EQ(half_from_float(value), half);
  }
}

TEST(Half, KnownValues) {
  EXPECT_EQ(float_from_half(0x3c00), 1.0F);
  EXPECT_EQ(float_from_half(0xc000), -2.0F);
  EXPECT_EQ(float_from_half(0x7bff), 65504.0F);
  EXPECT_EQ(float_from_half(0x0001), 0x1p-24F);
  EXPECT_EQ(float_from_half(0x0400), 0x1p-14F);
  EXPECT_EQ(half_from_float(-0.0F), 0x8000);
  EXPECT_EQ(half_from_float(0.1F), 0x2e66);
}

TEST(Half, TiesGoToEven) {
  EXPECT_EQ(half_from_float(1 + 0x1p-11F), 0x3c00);
  EXPECT_EQ(half_from_float(1 + 3 * 0x1p-11F), 0x3c02);
  EXPECT_EQ(half_from_float(std::nextafter(1 + 0x1p-11F, 2.0F)), 0x3c01);
  EXPECT_EQ(half_from_float(0x1p-25F), 0x0000) << "halfway to the smallest subnormal";
  EXPECT_EQ(half_from_float(std::nextafter(0x1p-25F, 1.0F)), 0x0001);
  EXPECT_EQ(half_from_float(3 * 0x1p-25F), 0x0002);
  EXPECT_EQ(half_from_float(std::nextafter(0x1p-14F, 0.0F)), 0x0400) << "rounds up into the normal range";
}

TEST(Half, OverflowIsInfinity) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(half_from_float(std::nextafter(65520.0F, 0.0F)), 0x7bff);
  EXPECT_EQ(half_from_float(65520.0F), 0x7c00);
  EXPECT_EQ(half_from_float(-1e10F), 0xfc00);
  EXPECT_EQ(half_from_float(infinity), 0x7c00);
  EXPECT_EQ(float_from_half(0xfc00), -infinity);
}

TEST(Half, NoOtherHalfIsNearer) {
  std::mt19937 random(1);
  for (int i = 0; i < 20000; ++i) {
    const float value = std::ldexp(std::uniform_real_distribution<float>(0.5F, 1)(random),
                                   static_cast<int>(random() % 42) - 26);
    const std::uint16_t half = half_from_float(value);
    const double distance = std::abs(static_cast<double>(value) - static_cast<double>(float_from_half(half)));
    for (const int step : {-1, 1}) {
      if (half + step < 0 || half + step > 0x7bff) continue;
      const double neighbour = float_from_half(static_cast<std::uint16_t>(half + step));
      EXPECT_LE(distance, std::abs(static_cast<double>(value) - neighbour)) << value;
    }
  }
}

}  // namespace
}  // namespace sinkscope
