// The rules beside the paper's: z-score, visible mean, soft membership; and margins, the threshold's other
// side.
#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <cmath>
#include <random>

#include "sinks/attention.h"

namespace sinkscope {
namespace {

using test::planted_columns;
using testing::DoubleNear;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Column sums [T] of a causal map in which every query attends evenly to all keys that it sees.
std::vector<float> uniform_causal_columns(std::size_t positions) {
  std::vector<float> columns;
  for (std::size_t k = 0; k < positions; ++k) {
    double sum = 0;
    for (std::size_t i = k; i < positions; ++i) sum += 1 / static_cast<double>(i + 1);
    columns.push_back(static_cast<float>(sum));
  }
  return columns;
}

TEST(VisibleMean, OfUniformCausalAttentionIsTheHarmonicSumAlone) {
  // related.md 7, item 1: k counts from 1 there.
  const std::vector<double> of8 = visible_means(uniform_causal_columns(8), true);
  const std::vector<double> expected8{.339732, .245408, .202976, .176905};
  for (std::size_t k = 0; k < 4; ++k) EXPECT_NEAR(of8[k], expected8[k], 1e-6);
  EXPECT_NEAR(of8[6], .133929, 1e-6);
  EXPECT_NEAR(of8[7], .125, 1e-6);
  const std::vector<double> of64 = visible_means(uniform_causal_columns(64), true);
  EXPECT_NEAR(of64[0], .074123, 1e-6);
  EXPECT_NEAR(of64[3], .047714, 1e-6);
  EXPECT_NEAR(of64[63], .015625, 1e-6);
}

TEST(VisibleMean, DependsOnTheLengthAsTheRuleDoes) {
  DetectionOptions options = default_detection(SinkRule::visible);
  options.causal = true;
  EXPECT_THAT(detect_sinks(uniform_causal_columns(64), options), IsEmpty());
  EXPECT_THAT(detect_sinks(uniform_causal_columns(8), options), ElementsAre(0));  // .3397 > .3
  options.epsilon = 0.34;
  EXPECT_THAT(detect_sinks(uniform_causal_columns(8), options), IsEmpty());
}

TEST(VisibleMean, WithoutCausalMaskIsOverAllQueries) {
  EXPECT_THAT(visible_means(std::vector<float>{2, 1, 1, 0}, false), ElementsAre(0.5, 0.25, 0.25, 0));
  EXPECT_THAT(detect_sinks(std::vector<float>{2, 1, 1, 0}, {.rule = SinkRule::visible, .epsilon = 0.25}),
              ElementsAre(0))
      << "0.25 is not above 0.25";
}

TEST(ZScore, ComparesWithThePopulationDeviation) {
  // Nine ones and an eleven: mean 2, deviation 3, so the eleven is exactly 3 deviations above.
  std::vector<float> columns(10, 1);
  columns[4] = 11;
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::zscore, .z = 3}), IsEmpty()) << "strict";
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::zscore, .z = 2.99}), ElementsAre(4));
}

TEST(ZScore, DoesNotDependOnTheScale) {
  const std::vector<float> columns = planted_columns(50, {3, 17}, 0.1);
  for (const SinkScale scale : {SinkScale::sum, SinkScale::mean, SinkScale::percent})
    EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::zscore, .scale = scale}), ElementsAre(3, 17));
}

TEST(SoftMembership, IsASigmoidAboutItsMiddle) {
  std::vector<float> columns(10, 1);
  columns[4] = 11;  // mean 2, deviation 3
  const DetectionOptions options = default_detection(SinkRule::soft);
  const std::vector<double> phi = soft_memberships(columns, options);
  EXPECT_NEAR(phi[4], 1 / (1 + std::exp(-5 * (11 - 8.0))), 1e-12);
  EXPECT_NEAR(phi[0], 1 / (1 + std::exp(-5 * (1 - 8.0))), 1e-12);
  EXPECT_THAT(detect_sinks(columns, options), ElementsAre(4));
  DetectionOptions flat = options;
  flat.steepness = 0.1;
  EXPECT_NEAR(soft_memberships(columns, flat)[4], 1 / (1 + std::exp(-0.3)), 1e-12);
  DetectionOptions percent = options;
  percent.scale = SinkScale::percent;  // ten times as much, of ten positions
  EXPECT_NEAR(soft_memberships(columns, percent)[0], 1 / (1 + std::exp(350.0)), 1e-12);
}

TEST(Rules, UniformAttentionHasNoSinkByAnyOfThem) {
  for (const std::size_t positions : {1, 2, 7, 64, 171}) {
    std::vector<float> columns = planted_columns(positions, {}, 0);
    columns[positions / 2] = std::nextafter(columns[positions / 2], 2.0F);
    for (const SinkRule rule : {SinkRule::paper, SinkRule::zscore, SinkRule::soft})
      EXPECT_THAT(detect_sinks(columns, {.rule = rule, .epsilon = 0, .z = 0}), IsEmpty())
          << name_of(rule) << " over " << positions;
  }
}

TEST(Rules, EmptyMapsHaveNoSink) {
  for (const SinkRule rule : {SinkRule::zscore, SinkRule::visible, SinkRule::soft}) {
    EXPECT_THAT(detect_sinks(std::vector<float>(8, 0.0F), {.rule = rule, .epsilon = 0, .z = 0}), IsEmpty());
    EXPECT_THAT(detect_sinks({}, {.rule = rule}), IsEmpty());
  }
}

TEST(Rules, DefaultsAreThoseOfTheLiterature) {
  EXPECT_EQ(default_detection(SinkRule::paper).epsilon, 3);
  EXPECT_EQ(default_detection(SinkRule::visible).epsilon, 0.3);
  EXPECT_EQ(default_detection(SinkRule::zscore).z, 3);
  EXPECT_EQ(default_detection(SinkRule::soft).z, 2);
  EXPECT_EQ(default_detection(SinkRule::soft).steepness, 5);
}

TEST(Rules, RefuseValuesThatAreNone) {
  const std::vector<float> columns{1, 1};
  EXPECT_THAT([&] { detect_sinks(columns, {.rule = SinkRule::zscore, .z = -1}); },
              ThrowsMessage<UsageError>("z must be a finite number of at least 0, not -1"));
  EXPECT_THAT([&] { detect_sinks(columns, {.rule = SinkRule::soft, .steepness = 0}); },
              ThrowsMessage<UsageError>("steepness must be a finite number above 0, not 0"));
  EXPECT_THAT([&] { detect_sinks(columns, {.rule = SinkRule::visible, .epsilon = NAN}); },
              ThrowsMessage<UsageError>(HasSubstr("epsilon")));
}

TEST(Margins, AreWhereASinkStopsBeingOne) {
  EXPECT_THAT(sink_margins(planted_columns(64, {9}, 0.25), {})[9], DoubleNear(16 - 48.0 / 63, 1e-4));
  std::mt19937 random(1);
  std::lognormal_distribution<float> sizes(0, 2);
  for (const SinkRule rule : {SinkRule::paper, SinkRule::visible, SinkRule::zscore, SinkRule::soft})
    for (const SinkScale scale : {SinkScale::sum, SinkScale::mean, SinkScale::percent}) {
      std::vector<float> columns(40);
      for (float& column : columns) column = sizes(random);
      DetectionOptions options{.rule = rule, .scale = scale};
      const std::vector<double> margins = sink_margins(columns, options);
      for (std::size_t j = 0; j < columns.size(); ++j) {
        if (margins[j] <= 0) continue;
        const auto is_sink = [&](double threshold) {
          options.epsilon = options.z = threshold;
          const std::vector<int> sinks = detect_sinks(columns, options);
          return std::find(sinks.begin(), sinks.end(), j) != sinks.end();
        };
        EXPECT_TRUE(is_sink(margins[j] * (1 - 1e-9))) << name_of(rule) << " " << name_of(scale) << " " << j;
        EXPECT_FALSE(is_sink(margins[j] * (1 + 1e-9))) << name_of(rule) << " " << name_of(scale) << " " << j;
      }
    }
}

TEST(Margins, WhoNeverStandsOutHasNone) {
  EXPECT_THAT(sink_margins(std::vector<float>(3, 0), {.rule = SinkRule::zscore}),
              testing::Each(-std::numeric_limits<double>::infinity()));
  EXPECT_THAT([] { sink_margins(std::vector<float>{1}, {.rule = SinkRule::topk}); },
              ThrowsMessage<UsageError>(HasSubstr("topk has no threshold")));
}

}  // namespace
}  // namespace sinkscope
