#include "sampling/token_distribution.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

constexpr float infinity = std::numeric_limits<float>::infinity();

std::vector<int> kept(std::vector<float> logits, const TokenFilter& filter) {
  filter_logits(logits, filter);
  std::vector<int> ids;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] != -infinity) ids.push_back(static_cast<int>(i));
  return ids;
}

// probabilities 0.1, 0.4, 0.2, 0.3
const std::vector<float> logits{std::log(0.1F), std::log(0.4F), std::log(0.2F), std::log(0.3F)};

TEST(FilterLogits, TopKKeepsTheLargest) {
  EXPECT_THAT(kept(logits, {0, 1, 0}), ElementsAre(0, 1, 2, 3));  // off
  EXPECT_THAT(kept(logits, {0, 1, 1}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {0, 1, 2}), ElementsAre(1, 3));
  EXPECT_THAT(kept(logits, {0, 1, 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(kept(logits, {0, 1, 11}), ElementsAre(0, 1, 2, 3));  // more than the vocabulary
}

TEST(FilterLogits, EqualLogitsLeaveTheLowerIds) {
  EXPECT_THAT(kept({1, 21.375, 3, 21.375}, {0, 1, 1}), ElementsAre(1));
  EXPECT_THAT(kept({2, 2, 2}, {0, 1, 2}), ElementsAre(0, 1));
}

TEST(FilterLogits, TopPKeepsTheTokenThatCrossesIt) {
  EXPECT_THAT(kept(logits, {0, 0.39, 0}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {0, 0.41, 0}), ElementsAre(1, 3));
  EXPECT_THAT(kept(logits, {0, 0.75, 0}), ElementsAre(1, 2, 3));
  EXPECT_THAT(kept(logits, {0, 1, 0}), ElementsAre(0, 1, 2, 3));
}

TEST(FilterLogits, SomethingIsAlwaysLeft) {
  EXPECT_THAT(kept(logits, {0, 0, 0}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {0, 1e-9, 0}), ElementsAre(1));
  EXPECT_THAT(kept({-infinity, -infinity, 3}, {0, 0.5, 2}), ElementsAre(2));
}

TEST(FilterLogits, TheOrderOfTopPAndTopKMatters) {
  // top_k first leaves 0.4 and 0.3, of which 0.4 / 0.7 = 0.57 exceeds 0.5 alone; top_p first keeps both.
  EXPECT_THAT(kept(logits, {0, 0.5, 2, true}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {0, 0.5, 2, false}), ElementsAre(1, 3));
}

TEST(FilterLogits, TemperatureComesBeforeTopP) {
  EXPECT_THAT(kept(logits, {0.1, 0.9, 0}), ElementsAre(1));
  EXPECT_THAT(kept(logits, {100, 0.7, 0}), ElementsAre(1, 2, 3));
}

TEST(FilterLogits, ATemperatureWhoseQuotientsLeaveTheRangeOfFloatLeavesTheLargest) {
  for (const double temperature : {1e-39, 1e-45, 1e-320}) {
    EXPECT_THAT(kept({1, 3, -infinity, 3, -2}, {temperature, 1, 0}), ElementsAre(1, 3)) << temperature;
    EXPECT_THAT(kept({-5, -3, -7}, {temperature, 0.5, 2}), ElementsAre(1)) << temperature;
    EXPECT_THAT(kept({0, -1}, {temperature, 1, 0}), ElementsAre(0)) << temperature;
  }
}

TEST(FilterLogits, ManyTokensAreCutWhereSortingAllOfThemWouldCut) {
  std::vector<float> many(5000);
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<float>(-0.01 * static_cast<double>(i * 7919 % 5000));
  std::vector<std::size_t> order(many.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i * 7919 % 5000 == 0 ? 0 : i * 7919 % 5000] = i;
  double all = 0, sum = 0;
  for (const float logit : many) all += std::exp(static_cast<double>(logit));
  std::size_t expected = 0;
  while (sum <= 0.9 * all) sum += std::exp(static_cast<double>(many[order[expected++]]));
  EXPECT_EQ(kept(many, {0, 0.9, 0}).size(), expected);
}

TEST(FilterLogits, ValuesOutOfRangeAreNamed) {
  for (const double top_p : {-0.1, 1.0001, std::nan("")})
    EXPECT_THROW(validate_filters(top_p, 0), UsageError);
  EXPECT_THROW(validate_filters(1, -1), UsageError);
  validate_filters(0, 0);
}

TEST(Softmax, RefusesWhatIsNotFinite) {
  std::vector<double> probability;
  EXPECT_THROW(softmax(std::vector<float>{1, std::nanf("")}, probability), Error);
  EXPECT_THROW(softmax(std::vector<float>{1, infinity}, probability), Error);
  EXPECT_THROW(softmax(std::vector<float>{-infinity, -infinity}, probability), Error);
  softmax(std::vector<float>{-infinity, 2}, probability);
  EXPECT_THAT(probability, ElementsAre(0, 1));
}

TEST(DrawByInversion, TakesTheFirstIdWhoseCumulativeProbabilityReachesTheNumber) {
  const std::vector<double> p{0.25, 0, 0.5, 0.25};
  EXPECT_EQ(draw_by_inversion(p, 0.1), 0);
  EXPECT_EQ(draw_by_inversion(p, 0.25), 0);
  EXPECT_EQ(draw_by_inversion(p, 0.3), 2);
  EXPECT_EQ(draw_by_inversion(p, 0.76), 3);
  EXPECT_EQ(draw_by_inversion(p, 1.0), 3);
}

TEST(DrawByExponentials, NeverTakesWhatHasNoProbability) {
  const std::vector<double> p{0, 0.5, 0.5};
  EXPECT_EQ(draw_by_exponentials(p, std::vector<double>{1e-300, 0.9, 0.1}), 2);
  EXPECT_EQ(draw_by_exponentials(p, std::vector<double>{1e-300, 0.1, 0.9}), 1);
}

}  // namespace
}  // namespace sinkscope
