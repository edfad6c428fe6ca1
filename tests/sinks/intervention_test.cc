#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <limits>

#include "sinks/attention.h"

namespace sinkscope {
namespace {

using test::planted_columns;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Sum 16 over 8 keys.
const std::vector<float> columns{3, 0, 1, 4, 4, 1, 0, 3};

std::vector<int> picked(std::span<const float> sums, std::span<const float> diagonal,
                        const InterventionOptions& options) {
  return choose_keys({sums, diagonal}, options).keys;
}

TEST(ChooseKeys, ZeroKeysIsNoIntervention) {
  EXPECT_THAT(picked(columns, {}, {.top_k = 0}), IsEmpty());
  EXPECT_THAT(picked(columns, {}, {.top_k = 0, .rule = SinkRule::topk}), IsEmpty());
}

TEST(ChooseKeys, TakesTheLargestFirstAndTheLowerIndexOfEquals) {
  EXPECT_THAT(picked(columns, {}, {.top_k = 1}), ElementsAre(3));
  EXPECT_THAT(picked(columns, {}, {.top_k = 3}), ElementsAre(3, 4, 0));
}

TEST(ChooseKeys, FewerCandidatesThanKeysMasksOnlyThose) {
  // At epsilon 0 the candidates are the scores above the mean of the others, 3 and 4.
  EXPECT_THAT(picked(columns, {}, {.top_k = 7}), ElementsAre(3, 4, 0, 7));
  // 3 against 13/7 + 2: no; 4 against 12/7 + 2: yes.
  EXPECT_THAT(picked(columns, {}, {.top_k = 7, .epsilon = 2}), ElementsAre(3, 4));
  EXPECT_THAT(picked(columns, {}, {.top_k = 7, .epsilon = 3}), IsEmpty());
}

TEST(ChooseKeys, WithRuleTopkEveryPositionIsACandidate) {
  EXPECT_THAT(picked(columns, {}, {.top_k = 6, .epsilon = 3, .rule = SinkRule::topk}),
              ElementsAre(3, 4, 0, 7, 2, 5));
  EXPECT_EQ(picked(columns, {}, {.top_k = 1000, .rule = SinkRule::topk}).size(), 8U);
}

TEST(ChooseKeys, RulesThatOnlyMeasureAreRefused) {
  for (const SinkRule rule : {SinkRule::zscore, SinkRule::visible, SinkRule::soft}) {
    EXPECT_THAT([&] { validate(InterventionOptions{.rule = rule}); },
                ThrowsMessage<UsageError>(HasSubstr("--sink-rule")));
    EXPECT_THROW(picked(columns, {}, {.top_k = 1, .rule = rule}), UsageError);
  }
}

TEST(ChooseKeys, TheScaleIsThatOfEpsilon) {
  EXPECT_THAT(picked(columns, {}, {.top_k = 7, .epsilon = 2, .scale = SinkScale::mean}), IsEmpty());
  EXPECT_THAT(picked(columns, {}, {.top_k = 7, .epsilon = 2.0 / 8, .scale = SinkScale::mean}),
              ElementsAre(3, 4));
  EXPECT_THAT(picked(columns, {}, {.top_k = 7, .epsilon = 200.0 / 8, .scale = SinkScale::percent}),
              ElementsAre(3, 4));
}

TEST(ChooseKeys, ExcludeSelfRanksAndDecidesWithoutTheDiagonal) {
  // Key 3 owes 3 of its 4 to itself.
  const std::vector<float> diagonal{0.5F, 0, 0, 3, 0.25F, 0, 0, 0.25F};
  EXPECT_THAT(picked(columns, diagonal, {.top_k = 3}), ElementsAre(3, 4, 0)) << "not asked for";
  EXPECT_THAT(picked(columns, diagonal, {.top_k = 3, .exclude_self = true}), ElementsAre(4, 7, 0));
  // The rule applies to C' too: 1 is below the mean of the others, 11/7.
  EXPECT_THAT(picked(columns, diagonal, {.top_k = 8, .exclude_self = true}), ElementsAre(4, 7, 0));
}

TEST(ChooseKeys, TheRatioKeepsTheFirstOfThePicked) {
  const auto kept = [](double ratio) { return picked(columns, {}, {.top_k = 4, .mask_sink_ratio = ratio}); };
  EXPECT_THAT(kept(1), ElementsAre(3, 4, 0, 7));
  EXPECT_THAT(kept(0.76), ElementsAre(3, 4, 0, 7));
  EXPECT_THAT(kept(0.75), ElementsAre(3, 4, 0));
  EXPECT_THAT(kept(0.01), ElementsAre(3));
  EXPECT_THAT(kept(0), IsEmpty());
}

TEST(ChooseKeys, TheRatioCountsExactly) {
  // 0.07 * 100 is 7.000000000000001 in floating point.
  const std::vector<float> hundred(100, 1);
  EXPECT_EQ(picked(hundred, {}, {.top_k = 100, .rule = SinkRule::topk, .mask_sink_ratio = 0.07}).size(), 7U);
}

TEST(ChooseKeys, UniformAttentionLosesNothing) {
  EXPECT_THAT(picked(planted_columns(171, {}, 0), {}, {.top_k = 10}), IsEmpty());
}

TEST(ChooseKeys, RefusesValuesThatHaveNoRank) {
  const std::vector<float> broken{1, std::numeric_limits<float>::quiet_NaN()};
  EXPECT_THAT([&] { picked(broken, {}, {.top_k = 1}); }, ThrowsMessage<Error>(HasSubstr("key 1 is nan")));
  EXPECT_THAT(
      [&] { picked(columns, {}, {.top_k = 1, .exclude_self = true}); },
      ThrowsMessage<Error>("8 column sums came with 0 values of the diagonal; both must be one per key"));
  EXPECT_THAT([&] { picked(columns, broken, {.top_k = 1}); },
              ThrowsMessage<Error>(HasSubstr("8 column sums")));
}

std::vector<std::uint8_t> removed(const std::vector<float>& sums, std::size_t positions,
                                  const InterventionOptions& options,
                                  const std::vector<float>& diagonal = {}) {
  return choose_removed_keys({.columns = sums, .diagonal = diagonal, .classes = {}, .positions = positions},
                             options)
      .removed;
}

TEST(ChooseRemovedKeys, EveryHeadIsRankedByItself) {
  const std::vector<float> two_heads{1, 3, 0, 0,   // candidates 1
                                     2, 0, 0, 2};  // candidates 0, 3
  EXPECT_THAT(removed(two_heads, 4, {.top_k = 2}), ElementsAre(0, 1, 0, 0, 1, 0, 0, 1));
  EXPECT_THAT(removed(two_heads, 4, {.top_k = 1}), ElementsAre(0, 1, 0, 0, 1, 0, 0, 0));
  EXPECT_THAT(removed(two_heads, 4, {.top_k = 0}), Each(0));
}

TEST(ChooseRemovedKeys, PermutingHeadsPermutesTheResult) {
  const std::vector<std::vector<float>> heads{planted_columns(20, {4}, 0.3), planted_columns(20, {9, 2}, 0.2),
                                              planted_columns(20, {}, 0)};
  const auto removed_in_order = [&](const std::vector<int>& order) {
    std::vector<float> flat;
    for (const int head : order) flat.insert(flat.end(), heads[head].begin(), heads[head].end());
    return removed(flat, 20, {.top_k = 5});
  };
  const std::vector<std::uint8_t> plain = removed_in_order({0, 1, 2});
  const std::vector<std::uint8_t> permuted = removed_in_order({2, 0, 1});
  const std::vector<int> plain_row_of{2, 0, 1};
  for (int row = 0; row < 3; ++row)
    for (int key = 0; key < 20; ++key)
      EXPECT_EQ(permuted[row * 20 + key], plain[plain_row_of[row] * 20 + key]);
}

TEST(ChooseRemovedKeys, UsesTheDiagonalOfTheSameRow) {
  const std::vector<float> two_heads{1, 3, 0, 0, 1, 3, 0, 0};
  const std::vector<float> diagonal{0, 0, 0, 0, 0, 3, 0, 0};
  EXPECT_THAT(removed(two_heads, 4, {.top_k = 1, .exclude_self = true}, diagonal),
              ElementsAre(0, 1, 0, 0, 1, 0, 0, 0));
}

TEST(ChooseRemovedKeys, RefusesLengthsThatDoNotFit) {
  EXPECT_THAT([] { removed(columns, 3, {.top_k = 1}); },
              ThrowsMessage<Error>(HasSubstr("no whole number of rows of 3 keys")));
  EXPECT_THROW(removed(columns, 0, {.top_k = 1}), Error);
  EXPECT_THROW(removed(columns, 4, {.top_k = 1}, std::vector<float>(4)), Error);
}

// What is drawn: the last of the eligible keys first.
const DrawIndices backwards = [](std::int64_t count, std::int64_t wanted) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < wanted; ++i) indices.push_back(count - 1 - i);
  return indices;
};

// Keys 3, 4, 0 and 7 stand out of `columns`, in this order.
const std::vector<std::uint8_t> classes{0, 0, 0, 1, 1, 2, 2, 2};

TEST(Controls, MaskAsManyKeysThatWereNotPicked) {
  const auto chosen = [&](SinkControl control, int top_k) {
    return choose_keys({columns, {}, {}}, {.top_k = top_k, .control = control}, backwards).keys;
  };
  EXPECT_THAT(chosen(SinkControl::none, 2), ElementsAre(3, 4));
  EXPECT_THAT(chosen(SinkControl::random, 2), ElementsAre(7, 6));     // of 0 1 2 5 6 7
  EXPECT_THAT(chosen(SinkControl::bottom, 3), ElementsAre(1, 6, 2));  // 0, 0, then 1: the lower index
  EXPECT_THAT(chosen(SinkControl::random, 4), ElementsAre(6, 5, 2, 1));
}

TEST(Controls, MatchedOnesAreOfTheSameClassAndCountWhatIsMissing) {
  const auto chosen = [&](int top_k) {
    return choose_keys({columns, {}, classes}, {.top_k = top_k, .control = SinkControl::matched}, backwards);
  };
  EXPECT_THAT(chosen(4).keys,
              ElementsAre(2, 6));  // for 0: 2; for 3 and 4, all that are decoded: none; for 7: 6
  EXPECT_EQ(chosen(4).missing, 2);
  EXPECT_THAT(chosen(1).keys, ElementsAre(4));
  EXPECT_EQ(chosen(1).missing, 0);
}

TEST(Controls, WhereAllKeysArePickedThereIsNoOther) {
  for (const SinkControl control : {SinkControl::random, SinkControl::bottom, SinkControl::matched}) {
    const ChosenKeys chosen =
        choose_keys({columns, {}, {}}, {.top_k = 8, .rule = SinkRule::topk, .control = control}, backwards);
    EXPECT_THAT(chosen.keys, IsEmpty());
    EXPECT_EQ(chosen.missing, 8);
  }
}

TEST(Classes, KeysOfOthersAreNeitherPickedNorDrawn) {
  const auto chosen = [&](std::uint8_t bits, SinkControl control) {
    return choose_keys({columns, {}, classes}, {.top_k = 2, .control = control, .classes = bits}, backwards)
        .keys;
  };
  EXPECT_THAT(chosen(1, SinkControl::none), ElementsAre(0));
  EXPECT_THAT(chosen(6, SinkControl::none), ElementsAre(3, 4));
  EXPECT_THAT(chosen(5, SinkControl::none), ElementsAre(0, 7));
  EXPECT_THAT(chosen(5, SinkControl::random), ElementsAre(6, 5));  // of 1 2 5 6
}

TEST(ChooseRemovedKeys, OnlyInTheLayersHeadsAndStepsThatAreNamed) {
  const std::vector<float> four{0, 2, 0, 2, 0, 2, 0, 2};  // [2 layers, 2 heads, 2 keys]
  const auto removed_at = [&](const InterventionOptions& options, std::int64_t step) {
    return choose_removed_keys(
               {.columns = four, .diagonal = {}, .classes = {}, .positions = 2, .heads = 2, .step = step},
               options)
        .removed;
  };
  EXPECT_THAT(removed_at({.top_k = 1, .layers = parse_ranges("1", "--sink-layers")}, 0),
              ElementsAre(0, 0, 0, 0, 0, 1, 0, 1));
  EXPECT_THAT(removed_at({.top_k = 1, .heads = parse_ranges("0", "--sink-heads")}, 0),
              ElementsAre(0, 1, 0, 0, 0, 1, 0, 0));
  const InterventionOptions some_steps{.top_k = 1, .steps = parse_ranges("2-3,7", "--sink-steps")};
  for (const std::int64_t step : {2, 3, 7})
    EXPECT_THAT(removed_at(some_steps, step), ElementsAre(0, 1, 0, 1, 0, 1, 0, 1));
  for (const std::int64_t step : {0, 1, 4, 6, 8}) EXPECT_THAT(removed_at(some_steps, step), Each(0));
}

TEST(NumberRanges, AreReadOrRefused) {
  EXPECT_TRUE(parse_ranges("", "--sink-steps").contains(123));
  EXPECT_EQ(parse_ranges("4,0-2", "--sink-steps").largest(), 4);
  for (const char* wrong : {"a", "1,", ",1", "3-1", "1-", "-1", "1 2", "1--2", "99999999999999999999"})
    EXPECT_THAT([&] { parse_ranges(wrong, "--sink-steps"); },
                ThrowsMessage<UsageError>(HasSubstr("--sink-steps")))
        << wrong;
}

TEST(SinkPositions, AreReadOrRefused) {
  EXPECT_EQ(parse_sink_positions("prompt,decoded,masked"), 7);
  EXPECT_EQ(parse_sink_positions("masked"), 4);
  for (const char* wrong : {"", "prompt,", "mask"})
    EXPECT_THAT([&] { parse_sink_positions(wrong); },
                ThrowsMessage<UsageError>(HasSubstr("--sink-positions")));
}

TEST(ValidateIntervention, NamesTheOptionAtFault) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto check = [](const InterventionOptions& options) { return [options] { validate(options); }; };
  EXPECT_NO_THROW(validate({}));
  EXPECT_NO_THROW(validate({.top_k = 1000000, .epsilon = 3, .mask_sink_ratio = 0}));
  EXPECT_THAT(check({.top_k = -1}), ThrowsMessage<UsageError>(HasSubstr("--sink-top-k must be at least 0")));
  for (const double epsilon : {-0.5, nan, infinity})
    EXPECT_THAT(check({.epsilon = epsilon}), ThrowsMessage<UsageError>(HasSubstr("--epsilon")));
  for (const double ratio : {-0.1, 1.1, nan})
    EXPECT_THAT(check({.mask_sink_ratio = ratio}), ThrowsMessage<UsageError>(HasSubstr("--mask-sink-ratio")));
}

}  // namespace
}  // namespace sinkscope
