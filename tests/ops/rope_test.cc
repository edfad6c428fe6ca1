#include "ops/rope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sinkscope {
namespace {

constexpr double pi = 3.14159265358979323846;

TEST(RopeTable, Llama3ScalingKeepsShortWavesAndStretchesLongOnes) {
  RopeOptions options{128, 500000.0};
  options.llama3 = Llama3Scaling{8, 1, 4, 8192};
  const RopeTable table = rope_table(2, options, at::kCPU);
  for (std::int64_t i = 0; i < 64; ++i) {
    const double frequency = std::pow(500000.0, -2.0 * static_cast<double>(i) / 128);
    const double wave = 2 * pi / frequency;
    double expected = frequency;
    if (wave > 8192)
      expected = frequency / 8;
    else if (wave >= 8192.0 / 4) {
      const double s = (8192 / wave - 1) / 3;
      expected = (1 - s) * frequency / 8 + s * frequency;
    }
    EXPECT_NEAR(std::asin(table.sine[1][i].item<double>()), expected <= pi / 2 ? expected : pi - expected,
                2e-6)
        << i;
  }
}

TEST(RopeTable, LinearScalingDividesPositions) {
  RopeOptions options{8, 10000.0, 4};
  const RopeTable stretched = rope_table(9, options, at::kCPU);
  const RopeTable plain = rope_table(3, {8, 10000.0}, at::kCPU);
  EXPECT_TRUE(at::allclose(stretched.cosine[8], plain.cosine[2], 0, 1e-6));
}

TEST(RopeTable, IsRoundedToTheDtypeOfTheRotation) {
  const RopeTable table = rope_table(50, {16, 10000.0, 1, std::nullopt, at::kBFloat16}, at::kCPU);
  EXPECT_TRUE(at::equal(table.cosine, table.cosine.to(at::kBFloat16).to(at::kFloat)));
  EXPECT_FALSE(at::equal(table.cosine, rope_table(50, {16, 10000.0}, at::kCPU).cosine));
}

}  // namespace
}  // namespace sinkscope
