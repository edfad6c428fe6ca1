#include "model/experts.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;

TEST(ChooseExperts, TakesTheLikeliestAndTheirSoftmaxWeights) {
  const ExpertsConfig config{4, 2, false, ""};
  const at::Tensor logits = at::tensor({1.0F, 3.0F, 2.0F, 0.0F}).view({1, 4});
  const ChosenExperts chosen = choose_experts(logits, {}, config);
  EXPECT_THAT(chosen.expert, ElementsAre(1, 2));
  const double sum = std::exp(1) + std::exp(3) + std::exp(2) + 1;
  EXPECT_NEAR(chosen.weight[0], std::exp(3) / sum, 1e-6);
  EXPECT_NEAR(chosen.weight[1], std::exp(2) / sum, 1e-6);
}

TEST(ChooseExperts, WeightsMayBeMadeToSumToOne) {
  const ChosenExperts chosen =
      choose_experts(at::tensor({1.0F, 3.0F, 2.0F, 0.0F}).view({1, 4}), {}, {4, 2, true, ""});
  EXPECT_NEAR(chosen.weight[0] + chosen.weight[1], 1, 1e-6);
}

TEST(ChooseExperts, ABiasCountsForTheChoiceOnly) {
  const at::Tensor bias = at::tensor({0.0F, 0.0F, 0.0F, 5.0F});
  const ChosenExperts chosen =
      choose_experts(at::tensor({1.0F, 3.0F, 2.0F, 0.0F}).view({1, 4}), bias, {4, 2, false, ""});
  EXPECT_THAT(chosen.expert, ElementsAre(1, 3));
  EXPECT_NEAR(chosen.weight[1], 1 / (std::exp(1) + std::exp(3) + std::exp(2) + 1), 1e-6);
}

TEST(ChooseExperts, TiesGoToTheLowerIndex) {
  EXPECT_THAT(choose_experts(at::zeros({2, 4}), {}, {4, 2, false, ""}).expert, ElementsAre(0, 1, 0, 1));
}

}  // namespace
}  // namespace sinkscope
