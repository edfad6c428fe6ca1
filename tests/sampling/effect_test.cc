#include <gtest/gtest.h>
#include <sinkscope/effect.h>
#include <sinkscope/error.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr float none = -std::numeric_limits<float>::infinity();

TEST(PredictionEffect, OfEqualRowsIsNone) {
  const std::vector<float> row{0.3F, -7, 2, 80, none};
  const PredictionEffect effect = compare_predictions(row, row);
  EXPECT_EQ(effect.kl, 0);
  EXPECT_TRUE(effect.agrees);
  EXPECT_EQ(effect.confidence, 0);
  EXPECT_EQ(effect.probability, 0);
}

// p = (3/4, 1/4), p' = (1/5, 4/5); an id without probability in both counts for nothing.
TEST(PredictionEffect, OfTwoKnownDistributions) {
  const std::vector<float> plain{std::log(3.0F) + 100, 100, none}, changed{-50, std::log(4.0F) - 50, none};
  const PredictionEffect effect = compare_predictions(plain, changed);
  EXPECT_NEAR(effect.kl, 0.75 * std::log(0.75 / 0.2) + 0.25 * std::log(0.25 / 0.8), 1e-6);
  EXPECT_FALSE(effect.agrees);
  EXPECT_NEAR(effect.confidence, 0.8 - 0.75, 1e-6);
  EXPECT_NEAR(effect.probability, 0.2 - 0.75, 1e-6);
}

TEST(PredictionEffect, TiesGoToTheLowerId) {
  EXPECT_TRUE(compare_predictions(std::vector<float>{1, 1, 0}, std::vector<float>{2, 1, 0}).agrees);
  EXPECT_FALSE(compare_predictions(std::vector<float>{1, 1, 0}, std::vector<float>{1, 2, 0}).agrees);
}

TEST(PredictionEffect, OfWhatIsNoNumberIsRefused) {
  const std::vector<float> fine{1, 2}, bad{1, std::nanf("")}, all_forbidden{none, none};
  EXPECT_THROW(compare_predictions(fine, bad), Error);
  EXPECT_THROW(compare_predictions(bad, fine), Error);
  EXPECT_THROW(compare_predictions(all_forbidden, fine), Error);
  EXPECT_THROW(compare_predictions(fine, std::vector<float>{1}), Error);
}

}  // namespace
}  // namespace sinkscope
