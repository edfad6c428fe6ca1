#include "measure/autoregressive.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

using nlohmann::ordered_json;
using ::testing::HasSubstr;

AutoregressiveMeasure measure_of(std::size_t layers, std::size_t heads, std::size_t positions) {
  AutoregressiveMeasure measure;
  measure.shape = {layers, heads, positions};
  measure.queries.resize(layers);
  for (auto& of_layer : measure.queries)
    for (std::size_t k = 0; k < positions; ++k)
      of_layer.push_back(
          queries_of_key(static_cast<std::int64_t>(k), static_cast<std::int64_t>(positions), 0, 0));
  return measure;
}

AutoregressiveSample ones(const AutoregressiveShape& shape) {
  const auto& [layers, heads, positions] = shape;
  AutoregressiveSample sample;
  sample.columns.assign(layers * heads * positions, 0.0F);
  sample.hidden_norm.assign((layers + 1) * positions, 1);
  sample.key_norm.assign(layers * positions, 1);
  sample.value_norm.assign(layers * positions, 1);
  sample.norm_product.assign(layers * heads * positions, 1);
  sample.cosine.assign(layers * heads * positions, 1);
  return sample;
}

// Query i spreads its attention evenly over keys 0 .. i: C_k = sum over i >= k of 1 / (i + 1).
ordered_json uniform(std::size_t positions) {
  const AutoregressiveMeasure measure = measure_of(1, 1, positions);
  AutoregressiveSample sample = ones(measure.shape);
  for (std::size_t k = 0; k < positions; ++k)
    for (std::size_t i = k; i < positions; ++i) sample.columns[k] += 1.0F / static_cast<float>(i + 1);
  AutoregressiveSums sums(measure);
  sums.add(sample);
  return sums.result();
}

TEST(AutoregressiveSums, UniformAttentionHasTheAlphasOfHarmonicSums) {
  const auto alpha = [](const ordered_json& result, std::size_t k) {
    return result["sinks"][k - 1]["alpha"].get<double>();
  };
  const ordered_json of_8 = uniform(8), of_64 = uniform(64);
  const std::vector<std::pair<std::size_t, double>> right_8{{1, .339732}, {2, .245408}, {3, .202976},
                                                            {4, .176905}, {7, .133929}, {8, .125}};
  for (const auto& [k, right] : right_8) EXPECT_NEAR(alpha(of_8, k), right, 1e-6) << k;
  const std::vector<std::pair<std::size_t, double>> right_64{{1, .074123}, {2, .059427},  {3, .052321},
                                                             {4, .047714}, {63, .015749}, {64, .015625}};
  for (const auto& [k, right] : right_64) EXPECT_NEAR(alpha(of_64, k), right, 1e-6) << k;
  // The measure depends on the length.
  EXPECT_EQ(of_8["sinks"][0]["sink_rate"], 100);
  EXPECT_EQ(of_64["sinks"][0]["sink_rate"], 0);
}

TEST(AutoregressiveSums, RatesAreMeansOverMapsAndThenOverSamples) {
  AutoregressiveMeasure measure = measure_of(2, 2, 4);
  measure.slot = true;
  AutoregressiveSums sums(measure);
  AutoregressiveSample first = ones(measure.shape), second = first;
  // alpha_0 = 0.5 in one map of the first sample and in three of the second; alpha_3 = 0.31 in all of the
  // second.
  first.columns[0] = 2;
  for (const std::size_t map : {0, 1, 3}) second.columns[map * 4] = 2;
  for (std::size_t map = 0; map < 4; ++map) second.columns[map * 4 + 3] = 0.31F;
  sums.add(first);
  sums.add(second);
  const ordered_json result = sums.result();
  EXPECT_DOUBLE_EQ(result["sinks"][0]["sink_rate"], 50);
  EXPECT_DOUBLE_EQ(result["sinks"][0]["standard_error"], 25);  // of 25 and 75
  EXPECT_DOUBLE_EQ(result["sinks"][0]["alpha"], 0.25);
  EXPECT_DOUBLE_EQ(result["sinks"][3]["sink_rate"], 50);
  EXPECT_EQ(result["sink_rate"], ordered_json::parse("[[100.0, 50.0], [0.0, 50.0]]"));
  EXPECT_EQ(result["alpha"], ordered_json::parse("[[0.5, 0.25], [0.0, 0.25]]"));
  // What the columns lack of all queries' 1 went to the slot.
  EXPECT_NEAR(result["slot"]["alpha"], 1 - (4 * 2 + 4 * 0.31) / 4 / 8, 1e-7);
  EXPECT_DOUBLE_EQ(result["slot"]["sink_rate"], 100);
}

TEST(AutoregressiveSums, ASinkIsAboveEpsilonNotAtIt) {
  AutoregressiveMeasure measure = measure_of(1, 1, 2);
  measure.epsilon = 0.5;
  AutoregressiveSums sums(measure);
  AutoregressiveSample sample = ones(measure.shape);
  sample.columns = {1.0F, 0.5001F};
  sums.add(sample);
  EXPECT_EQ(sums.result()["sinks"][0]["sink_rate"], 0);
  EXPECT_EQ(sums.result()["sinks"][1]["sink_rate"], 100);
  EXPECT_TRUE(sums.result()["sinks"][0]["standard_error"].is_null());
  EXPECT_TRUE(sums.result()["slot"].is_null());
}

TEST(AutoregressiveSums, RatiosAreOfThePositionToTheMeanOfTheOthers) {
  AutoregressiveMeasure measure = measure_of(1, 1, 3);
  measure.position = 1;
  AutoregressiveSums sums(measure);
  AutoregressiveSample sample = ones(measure.shape);
  sample.hidden_norm = {1, 10, 3, 4, 2, 4};
  sample.key_norm = {1, 0.5, 1};
  sample.value_norm = {0, 1, 0};
  sums.add(sample);
  sample.hidden_norm = {1, 2, 1, 1, 1, 1};
  sums.add(sample);
  const ordered_json result = sums.result();
  EXPECT_EQ(result["massive_ratio"], ordered_json::parse("[3.5, 0.75]"));  // means of 5 and 2, 0.5 and 1
  EXPECT_EQ(result["key_ratio"], ordered_json::parse("[0.5]"));
  EXPECT_EQ(result["value_ratio"], ordered_json::parse("[0.0]"));  // the others are zero
  EXPECT_EQ(result["hidden_norm"], ordered_json::parse("[[1.0, 6.0, 2.0], [2.5, 1.5, 2.5]]"));
}

TEST(AutoregressiveSums, CosinesAreMeansOverThePairsThatSeeEachOther) {
  AutoregressiveMeasure measure = measure_of(1, 2, 3);
  AutoregressiveSums sums(measure);
  AutoregressiveSample sample = ones(measure.shape);
  sample.cosine = {3, 1, 0.5, 0, 0, -1};  // sums over 3, 2 and 1 queries
  sample.norm_product = {6, 2, 4, 3, 0, 0};
  sums.add(sample);
  const ordered_json split = sums.result()["query_key"];
  EXPECT_EQ(split["cosine"], ordered_json::parse("[[1.0, 0.0]]"));
  EXPECT_EQ(split["norm_product"], ordered_json::parse("[[2.0, 1.0]]"));
  EXPECT_EQ(split["other_norm_product"], ordered_json::parse("[[2.0, 0.0]]"));
  EXPECT_DOUBLE_EQ(split["other_cosine"][0][0], 0.5);
  EXPECT_DOUBLE_EQ(split["other_cosine"][0][1], -1.0 / 3);
}

TEST(AutoregressiveSums, WrongSamplesAreRefused) {
  const AutoregressiveMeasure measure = measure_of(1, 1, 2);
  const auto refused = [&](const AutoregressiveSample& sample) {
    try {
      AutoregressiveSums(measure).add(sample);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  AutoregressiveSample sample = ones(measure.shape);
  sample.hidden_norm[1] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(refused(sample),
              HasSubstr("norms of hidden states of a sample hold a number that is not finite"));
  sample = ones(measure.shape);
  sample.columns.pop_back();
  EXPECT_THAT(refused(sample), HasSubstr("column sums of a sample are 1 numbers; 2 would be right"));
  EXPECT_THROW(AutoregressiveSums(measure).result(), Error);
}

TEST(QueriesOfKey, FollowTheMask) {
  const auto of = [](std::int64_t k, std::int64_t window, std::int64_t prefix) {
    const QueriesOfKey queries = queries_of_key(k, 10, window, prefix);
    return std::pair(queries.first, queries.last);
  };
  EXPECT_EQ(of(3, 0, 0), std::pair(std::int64_t{3}, std::int64_t{10}));
  EXPECT_EQ(of(3, 4, 0), std::pair(std::int64_t{3}, std::int64_t{7}));
  EXPECT_EQ(of(8, 4, 0), std::pair(std::int64_t{8}, std::int64_t{10}));
  EXPECT_EQ(of(3, 4, 4), std::pair(std::int64_t{0}, std::int64_t{10}));
}

}  // namespace
}  // namespace sinkscope
