#include "sampling/prediction.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cmath>
#include <limits>

#include "ops/vocabulary_head.h"
#include "sampling/random_stream.h"
#include "sampling/schedule.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

TEST(TransferSchedule, SpreadsTheRemainderOverTheFirstSteps) {
  EXPECT_THAT(transfer_schedule(10, 4), ElementsAre(3, 3, 2, 2));
  EXPECT_THAT(transfer_schedule(8, 4), ElementsAre(2, 2, 2, 2));
  EXPECT_THAT(transfer_schedule(2, 5), ElementsAre(1, 1, 0, 0, 0));
  EXPECT_THAT(transfer_schedule(0, 3), ElementsAre(0, 0, 0));
}

TEST(NearestMultiples, NeverNamesZero) {
  EXPECT_THAT(nearest_multiples(6, 4), ElementsAre(4, 8));
  EXPECT_THAT(nearest_multiples(3, 4), ElementsAre(4));
  EXPECT_THAT(nearest_multiples(8, 4), ElementsAre(8));
}

// The prediction of a row of logits, through a head whose weights they are.
Prediction predict_greedily(const std::vector<float>& logits, const LladaOptions& options = {},
                            at::ScalarType dtype = at::kFloat) {
  const at::Tensor weight =
      at::tensor(at::ArrayRef<float>(logits)).view({static_cast<std::int64_t>(logits.size()), 1});
  const Linear head(Backend::cpu, weight, {});
  ProductInput one;
  one.values = at::ones({1, 1});
  const std::vector<std::int64_t> offsets{0, 1};
  return prediction_of(vocabulary_head(head, one, plan_rows(offsets), vocabulary_options(options)), 0,
                       options, dtype);
}

TEST(Predict, TakesTheLowestOfEqualMaxima) {
  // two equal values, as bfloat16 makes them
  EXPECT_EQ(predict_greedily({1, 21.375, 3, 21.375}).token, 1);
}

TEST(Predict, ConfidenceIsTheSoftmaxInThePrecisionAskedFor) {
  LladaOptions options;
  const std::vector<float> logits{0, 7, 1};
  const double exact = std::exp(7) / (1 + std::exp(7) + std::exp(1));
  EXPECT_NEAR(predict_greedily(logits, options).confidence, exact, 1e-15);
  options.confidence = ConfidencePrecision::f32;
  const double single = predict_greedily(logits, options).confidence;
  EXPECT_NEAR(single, exact, 2e-7);
  EXPECT_EQ(single, static_cast<double>(static_cast<float>(single)));
  options.confidence = ConfidencePrecision::model;
  EXPECT_EQ(predict_greedily(logits, options, at::kBFloat16).confidence, 0.99609375);  // 8 bits
  EXPECT_EQ(predict_greedily(logits, options, at::kFloat).confidence, single);
}

TEST(Predict, ForbiddenIdsAreNotPredicted) {
  LladaOptions options;
  options.mask_id = 2;
  options.eos_id = 1;
  EXPECT_EQ(predict_greedily({0, 5, 9}, options).token, 2);
  options.forbid_mask = true;
  EXPECT_EQ(predict_greedily({0, 5, 9}, options).token, 1);
  options.logits_eos_inf = true;
  EXPECT_EQ(predict_greedily({0, 5, 9}, options).token, 0);
  EXPECT_EQ(predict_greedily({0, 5, 9}, options).confidence, 1);
}

TEST(Predict, EndTokensKeepTheirPredictionAndLoseTheirConfidence) {
  LladaOptions options;
  options.eos_id = 1;
  options.eot_id = 3;
  options.confidence_eos_eot_inf = true;
  const Prediction end = predict_greedily({0, 5, 4, 2}, options);
  EXPECT_EQ(end.token, 1);
  EXPECT_EQ(end.confidence, 0);
  const Prediction other = predict_greedily({0, 1, 4, 2}, options);
  EXPECT_EQ(other.token, 2);
  EXPECT_NEAR(other.confidence, std::exp(4) / (1 + std::exp(4)), 1e-12);  // renormalised without the two
}

// The original's form, exp(l) / (-ln U)^T, on logits where it does not overflow.
TEST(Predict, NoiseIsThatOfTheOriginal) {
  LladaOptions options;
  options.temperature = 0.8;
  RandomStream random(7);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> noise(50);
    random.fill(noise);
    std::vector<float> logits(50);
    for (std::size_t i = 0; i < 50; ++i)
      logits[i] = static_cast<float>(std::sin(static_cast<double>(i * 7 + trial)) * 3);
    std::size_t best = 0;
    std::vector<double> value(50);
    for (std::size_t i = 0; i < 50; ++i) {
      value[i] =
          std::exp(static_cast<double>(logits[i])) / std::pow(-std::log(noise[i]), options.temperature);
      if (value[i] > value[best]) best = i;
    }
    const double quiet = std::exp(static_cast<double>(logits[best]));
    double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l));
    const Prediction prediction = predict_with_noise(logits, noise, options, at::kFloat);
    EXPECT_EQ(prediction.token, static_cast<std::int32_t>(best));
    EXPECT_NEAR(prediction.confidence, quiet / sum, 1e-12);  // without the noise
  }
}

TEST(Predict, NoiseDoesNotOverflowOnLargeLogits) {
  LladaOptions options;
  options.temperature = 1;
  std::vector<float> logits{2000, 0, 0};
  const std::vector<double> noise{0.5, 0.5, 0};
  EXPECT_EQ(predict_with_noise(logits, noise, options, at::kFloat).token, 0);
}

TEST(Predict, LogitsThatAreNotFiniteAreAnError) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    EXPECT_THROW(predict_greedily({0, bad, 1}), Error);
}

// The first numbers of torch.manual_seed(7) followed by torch.rand(3, dtype=torch.float64) and by
// torch.rand(2) differ from seed to seed.
TEST(RandomStream, SeedsReproduceAndChunksDoNotMatter) {
  std::vector<double> whole(10), first(4), rest(6);
  RandomStream a(5), b(5), c(6);
  a.fill(whole);
  b.fill(first);
  b.fill(rest);
  first.insert(first.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, first);
  std::vector<double> other(10);
  c.fill(other);
  EXPECT_NE(whole, other);
}

std::vector<std::int64_t> positions_opened(const std::vector<double>& confidence, std::int64_t count) {
  return open_most_confident(confidence, std::vector<std::uint8_t>(confidence.size(), 1), count).positions;
}

TEST(OpenMostConfident, RanksAndCuts) {
  EXPECT_THAT(positions_opened({0.1, 0.9, 0.5}, 2), ElementsAre(1, 2));
  EXPECT_THAT(positions_opened({0.1, 0.9}, 0), ElementsAre());
  EXPECT_THAT(positions_opened({0.1, 0.9}, 7), ElementsAre(1, 0));
}

TEST(OpenMostConfident, OnlyCandidatesAreOpened) {
  EXPECT_THAT(open_most_confident(std::vector<double>{0.9, 0.2, NAN}, std::vector<std::uint8_t>{0, 1, 0}, 2)
                  .positions,
              ElementsAre(1));
}

// Saturated confidences tie; the lowest index wins and the others are counted.
TEST(OpenMostConfident, TiesGoToTheLowestIndexAndAreCounted) {
  const Opened opened =
      open_most_confident(std::vector<double>{1, 0.5, 1, 1, 1}, std::vector<std::uint8_t>(5, 1), 2);
  EXPECT_THAT(opened.positions, ElementsAre(0, 2));
  EXPECT_EQ(opened.ties, 2);
  EXPECT_EQ(open_most_confident(std::vector<double>{1, 0.5, 1}, std::vector<std::uint8_t>(3, 1), 2).ties, 0);
  EXPECT_EQ(open_most_confident(std::vector<double>{1, 1}, std::vector<std::uint8_t>(2, 1), 0).ties, 0);
}

}  // namespace
}  // namespace sinkscope
