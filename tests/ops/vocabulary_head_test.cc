// The head that never keeps its logits against the whole logits and libtorch's operations.
#include "ops/vocabulary_head.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "ops/projection_fixture.h"

namespace sinkscope {
namespace {

// (offsets, vocabulary): fewer ids than a slice, several slices, several slices to a run, several pieces
struct Shape {
  std::vector<std::int64_t> offsets;
  std::int64_t vocabulary;
};
const std::vector<Shape> shapes{{{0, 1}, 3}, {{0, 5, 8}, 300}, {{0, 20}, 20000}, {{0, 600, 620}, 130}};

VocabularyRows reduce(Backend backend, const at::Tensor& x, const at::Tensor& weight, at::ScalarType type,
                      const std::vector<std::int64_t>& offsets, const VocabularyOptions& options) {
  const Linear head(backend, weight, {.dtype = type});
  return vocabulary_head(head, testing::input_for(head, x), plan_rows(offsets), options);
}

double probability(const VocabularyRows& rows, std::size_t row) {
  return std::exp(static_cast<double>(rows.logit[row]) - static_cast<double>(rows.max[row])) /
         rows.sum_exp[row];
}

// Products of the two backends differ by roundings: a token may differ only where logits tie within them.
void expect_same(const VocabularyRows& fused, const VocabularyRows& plain, double tolerance) {
  ASSERT_EQ(fused.token.size(), plain.token.size());
  for (std::size_t r = 0; r < plain.token.size(); ++r) {
    EXPECT_NEAR(fused.max[r], plain.max[r], tolerance) << r;
    if (fused.token[r] != plain.token[r]) {
      EXPECT_NEAR(fused.logit[r], plain.logit[r], tolerance) << r;
    }
    EXPECT_NEAR(probability(fused, r), probability(plain, r), tolerance * (1 + probability(plain, r))) << r;
  }
}

TEST(VocabularyHead, EqualsTheSoftmaxOfTheWholeLogits) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16})
    for (const Shape& shape : shapes)
      for (const bool in_float64 : {true, false}) {
        const at::Tensor x = at::randn({shape.offsets.back(), 32}).to(type);
        const at::Tensor weight = at::randn({shape.vocabulary, 32}).to(type);
        VocabularyOptions options;
        options.in_float64 = in_float64;
        const double tolerance = type == at::kFloat ? 1e-4 : 0.13;  // one unit in the last place below 32
        expect_same(reduce(Backend::cpu, x, weight, type, shape.offsets, options),
                    reduce(Backend::aten, x, weight, type, shape.offsets, options), tolerance);
      }
}

TEST(VocabularyHead, TakesTheLowestOfEqualLogitsAcrossSlices) {
  const at::Tensor x = at::ones({2, 4});
  at::Tensor weight = at::zeros({5000, 4});
  for (const int id : {70, 71, 300, 4999}) weight[id].fill_(1);
  const VocabularyRows rows = reduce(Backend::cpu, x, weight, at::kFloat, {0, 2}, {});
  EXPECT_THAT(rows.token, ::testing::Each(70));
  EXPECT_NEAR(rows.sum_exp[0], 4 + 4996 * std::exp(-4.0), 1e-9);
}

TEST(VocabularyHead, ForbiddenIdsDoNotExistAndExcludedOnesHaveNoShare) {
  const at::Tensor x = at::ones({1, 1});
  at::Tensor weight = at::arange(200).to(at::kFloat).view({200, 1});  // logit of id i is i
  VocabularyOptions options;
  options.forbidden = {199, 5};
  options.excluded = {198, 7};
  for (const Backend backend : {Backend::cpu, Backend::aten}) {
    const VocabularyRows rows = reduce(backend, x, weight, at::kFloat, {0, 1}, options);
    EXPECT_EQ(rows.token[0], 198);
    EXPECT_EQ(rows.logit[0], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(rows.max[0], 197);
    EXPECT_NEAR(rows.sum_exp[0], 1 / (1 - std::exp(-1.0)), 1e-12);  // of 1 + e^-1 + e^-2 + ...
  }
}

TEST(VocabularyHead, GuidanceMixesTheTwoHalves) {
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    const at::Tensor x = at::randn({2 * 9, 16}).to(type), weight = at::randn({400, 16}).to(type);
    VocabularyOptions options;
    options.guidance = 1.5;
    const std::vector<std::int64_t> offsets{0, 4, 9, 13, 18};
    // two casts of differences that the factor 2.5 widens
    expect_same(reduce(Backend::cpu, x, weight, type, offsets, options),
                reduce(Backend::aten, x, weight, type, offsets, options), type == at::kFloat ? 1e-4 : 0.5);
  }
}

TEST(VocabularyHead, LogitsThatAreNotFiniteCannotLookFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()})
    for (const int id : {0, 77, 299}) {
      at::Tensor weight = at::randn({300, 2});
      weight[id].fill_(bad);
      const VocabularyRows rows = reduce(Backend::cpu, at::ones({1, 2}), weight, at::kFloat, {0, 1}, {});
      EXPECT_FALSE(std::isfinite(rows.sum_exp[0]) && std::isfinite(rows.max[0])) << bad << " " << id;
    }
}

TEST(VocabularyHead, BitsDependNeitherOnThreadsNorOnTheBatch) {
  const int before = omp_get_max_threads();
  const at::Tensor x = at::randn({50, 16}), weight = at::randn({9000, 16});
  omp_set_num_threads(1);
  const VocabularyRows one = reduce(Backend::cpu, x, weight, at::kFloat, {0, 20, 50}, {});
  omp_set_num_threads(3);
  const VocabularyRows three = reduce(Backend::cpu, x, weight, at::kFloat, {0, 20, 50}, {});
  const VocabularyRows alone =
      reduce(Backend::cpu, x.narrow(0, 20, 30).contiguous(), weight, at::kFloat, {0, 30}, {});
  omp_set_num_threads(before);
  EXPECT_EQ(one.token, three.token);
  EXPECT_EQ(one.sum_exp, three.sum_exp);
  EXPECT_EQ(std::vector<double>(one.sum_exp.begin() + 20, one.sum_exp.end()), alone.sum_exp);
  EXPECT_EQ(std::vector<std::int32_t>(one.token.begin() + 20, one.token.end()), alone.token);
}

TEST(VocabularyHead, NoRowsGiveNone) {
  for (const Backend backend : {Backend::cpu, Backend::aten})
    EXPECT_TRUE(reduce(backend, at::empty({0, 8}), at::randn({30, 8}), at::kFloat, {0, 0}, {}).token.empty());
}

TEST(VocabularyLogits, AreTheProduct) {
  const at::Tensor x = at::randn({7, 16}), weight = at::randn({300, 16});
  const Linear head(Backend::cpu, weight, {});
  const at::Tensor logits =
      vocabulary_logits(head, testing::input_for(head, x), plan_rows(std::vector<std::int64_t>{0, 7}));
  EXPECT_LT((logits - at::linear(x, weight)).abs().max().item<float>(), 1e-4);
}

}  // namespace
}  // namespace sinkscope
