#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "sinks/attention.h"

namespace sinkscope {
namespace {

using test::planted_columns;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Column sums of S keys that add up to S, the first of them `first`.
std::vector<float> columns_with_first(std::size_t positions, double first) {
  const double other = (static_cast<double>(positions) - first) / static_cast<double>(positions - 1);
  std::vector<float> columns(positions, static_cast<float>(other));
  columns[0] = static_cast<float>(first);
  return columns;
}

TEST(Detection, PaperRuleFiresAboveItsClosedForm) {
  // C_j > 1 + eps * (S-1) / S
  EXPECT_THAT(detect_sinks(columns_with_first(64, 3.9531), {.epsilon = 3}), IsEmpty());
  EXPECT_THAT(detect_sinks(columns_with_first(64, 3.953125), {.epsilon = 3}), IsEmpty())
      << "the inequality is strict";
  EXPECT_THAT(detect_sinks(columns_with_first(64, 3.95314), {.epsilon = 3}), ElementsAre(0));
}

TEST(Detection, UniformAttentionHasNoSinkWhateverTheRounding) {
  for (const std::size_t positions : {2, 3, 7, 64, 171, 1000}) {
    const std::vector<float> columns = planted_columns(positions, {}, 0);
    EXPECT_THAT(detect_sinks(columns, {.epsilon = 0}), IsEmpty()) << positions << " positions";
    std::vector<float> shaken = columns;
    shaken[1] = std::nextafter(shaken[1], 2.0F);
    EXPECT_THAT(detect_sinks(shaken, {.epsilon = 0}), IsEmpty())
        << positions << " positions, one unit in the last place";
  }
}

TEST(Detection, DefaultsAreTheSumScaleWithEpsilonThree) {
  EXPECT_THAT(detect_sinks(columns_with_first(64, 3.9), {}), IsEmpty());
  EXPECT_THAT(detect_sinks(columns_with_first(64, 4.0), {}), ElementsAre(0));
}

TEST(Detection, OnTheMeanScaleEpsilonThreeNeverFires) {
  const std::vector<float> everything_on_one_key = planted_columns(64, {5}, 1);
  EXPECT_THAT(detect_sinks(everything_on_one_key, {.scale = SinkScale::mean, .epsilon = 3}), IsEmpty());
  EXPECT_THAT(detect_sinks(everything_on_one_key, {.scale = SinkScale::mean, .epsilon = 0.5}),
              ElementsAre(5));
}

TEST(Detection, ScalesAgreeWhereEpsilonIsScaledToo) {
  const std::vector<float> columns = planted_columns(50, {3, 17}, 0.1);  // C = 5
  for (const double epsilon : {1.0, 4.0, 4.5}) {
    const std::vector<int> expected = epsilon < 4.15 ? std::vector<int>{3, 17} : std::vector<int>{};
    EXPECT_EQ(detect_sinks(columns, {.epsilon = epsilon}), expected);
    EXPECT_EQ(detect_sinks(columns, {.scale = SinkScale::mean, .epsilon = epsilon / 50}), expected);
    EXPECT_EQ(detect_sinks(columns, {.scale = SinkScale::percent, .epsilon = epsilon * 2}), expected);
  }
}

TEST(Detection, ASmallerEpsilonFindsMore) {
  std::vector<float> columns(10);
  std::iota(columns.begin(), columns.end(), 0.0F);  // 0 ... 9, mean of the others at most 5
  EXPECT_THAT(detect_sinks(columns, {.epsilon = 4}), ElementsAre(9));
  EXPECT_THAT(detect_sinks(columns, {.epsilon = 0}), ElementsAre(5, 6, 7, 8, 9));
}

TEST(Detection, PlantedMapsAreFoundExactly) {
  constexpr std::size_t positions = 40;
  for (int step = 0; step < 12; ++step) {
    EXPECT_THAT(detect_sinks(planted_columns(positions, {7}, 0.2), {}), ElementsAre(7)) << "static";
    EXPECT_THAT(detect_sinks(planted_columns(positions, {3 * step}, 0.2), {}), ElementsAre(3 * step))
        << "moving";
    const std::vector<int> flash = step == 4 ? std::vector<int>{11} : std::vector<int>{};
    EXPECT_EQ(detect_sinks(planted_columns(positions, flash, 0.2), {}), flash) << "one step only";
  }
  EXPECT_THAT(detect_sinks(planted_columns(positions, {0, 13, 39}, 0.2), {}), ElementsAre(0, 13, 39));
}

TEST(Detection, TopkTakesTheLargestAndTheLowerIndexOfEquals) {
  const std::vector<float> columns{1, 5, 2, 5, 5, 0};
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::topk, .top_k = 2}), ElementsAre(1, 3));
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::topk, .top_k = 4}), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::topk, .top_k = 99}), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(detect_sinks(columns, {.rule = SinkRule::topk, .top_k = 0}), IsEmpty());
}

TEST(Detection, ALoneKeyIsNoSinkByComparison) {
  EXPECT_THAT(detect_sinks(std::vector<float>{1}, {.epsilon = 0}), IsEmpty());
  EXPECT_THAT(detect_sinks(std::vector<float>{1}, {.rule = SinkRule::topk, .top_k = 1}), ElementsAre(0));
  EXPECT_THAT(detect_sinks({}, {.epsilon = 0}), IsEmpty());
}

TEST(Detection, EmptyRowsHaveNoSink) {
  EXPECT_THAT(detect_sinks(std::vector<float>(8, 0.0F), {.epsilon = 0}), IsEmpty());
}

TEST(Detection, RefusesWhatCannotBeCompared) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_THAT(
      [] {
        detect_sinks(std::vector<float>{1, nan, 1}, {});
      },
      ThrowsMessage<Error>(HasSubstr("key 1")));
  EXPECT_THAT(
      [] {
        detect_sinks(std::vector<float>{1, 1, infinity}, {});
      },
      ThrowsMessage<Error>(HasSubstr("key 2 is inf")));
  EXPECT_THAT(
      [] {
        detect_sinks(std::vector<float>{1, 1}, {.epsilon = -1});
      },
      ThrowsMessage<UsageError>(HasSubstr("epsilon")));
  EXPECT_THAT(
      [] {
        detect_sinks(std::vector<float>{1, 1}, {.top_k = -1});
      },
      ThrowsMessage<UsageError>(HasSubstr("top_k")));
}

TEST(SinkNames, GoThereAndBack) {
  for (const SinkRule rule :
       {SinkRule::paper, SinkRule::topk, SinkRule::zscore, SinkRule::visible, SinkRule::soft})
    EXPECT_EQ(parse_sink_rule(name_of(rule)), rule);
  for (const SinkScale scale : {SinkScale::sum, SinkScale::mean, SinkScale::percent})
    EXPECT_EQ(parse_sink_scale(name_of(scale)), scale);
  for (const SinkSource source : {SinkSource::raw, SinkSource::masked})
    EXPECT_EQ(parse_sink_source(name_of(source)), source);
  EXPECT_EQ(name_of(SinkRule::paper), "paper");
}

TEST(SinkNames, UnknownOnesNameTheOptionAndTheChoices) {
  EXPECT_THAT(
      [] { parse_sink_rule("papr"); },
      ThrowsMessage<UsageError>("--sink-rule takes paper or topk or zscore or visible or soft, not 'papr'"));
  EXPECT_THAT([] { parse_sink_scale(""); }, ThrowsMessage<UsageError>(HasSubstr("--sink-scale")));
  EXPECT_THAT([] { parse_sink_source("rawest"); }, ThrowsMessage<UsageError>(HasSubstr("--sink-from")));
}

}  // namespace
}  // namespace sinkscope
