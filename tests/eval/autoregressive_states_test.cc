// Closed forms of repeated tokens, on models with random weights.
#include "eval/autoregressive_states.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "support/variant_model.h"

namespace sinkscope {
namespace {

using nlohmann::ordered_json;

Transformer variant_model(const AttentionVariant& variant) {
  return {testing::variant_checkpoint("llama-tiny", variant), TransformerOptions()};
}

ordered_json of_repeated(const Transformer& model, std::int64_t length, double epsilon = 0.3) {
  const auto sequences =
      random_sequences(3, static_cast<std::size_t>(length), model.config().embedding_rows, true, 5);
  return measure_sequences(model, autoregressive_measure(model.config(), length, epsilon, 0), sequences)
      .result();
}

double harmonic(std::int64_t n) {
  double sum = 0;
  for (std::int64_t i = 1; i <= n; ++i) sum += 1 / static_cast<double>(i);
  return sum;
}

void expect_uniform(const ordered_json& result, std::int64_t length) {
  for (std::int64_t k = 1; k <= length; ++k)
    EXPECT_NEAR(result["sinks"][k - 1]["alpha"].get<double>(),
                (harmonic(length) - harmonic(k - 1)) / static_cast<double>(length - k + 1), 2e-6)
        << k;
}

TEST(AutoregressiveStates, WithoutPositionsARepeatedTokenIsAttendedToUniformly) {
  const Transformer model = variant_model({.positions = PositionEncoding::none});
  for (const std::int64_t length : {8, 64}) expect_uniform(of_repeated(model, length), length);
  EXPECT_EQ(of_repeated(model, 8)["sinks"][0]["sink_rate"], 100);
  EXPECT_EQ(of_repeated(model, 64)["sinks"][0]["sink_rate"], 0);
  // All keys and all queries are the same.
  const ordered_json split = of_repeated(model, 8)["query_key"];
  for (const char* name : {"cosine", "norm_product"})
    for (std::size_t h = 0; h < split[name][0].size(); ++h)
      EXPECT_NEAR(split[name][0][h].get<double>(), split[std::string("other_") + name][0][h].get<double>(),
                  1e-6);
}

// Rows of unnormalised sigmoids are not of sum 1; what is measured is.
TEST(AutoregressiveStates, UnnormalisedSigmoidsAreMeasuredAsShares) {
  const Transformer model = variant_model(
      {.similarity = Similarity::sigmoid, .normalised = false, .positions = PositionEncoding::none});
  // From layer 1 on rows differ: their sums, 1/2 for each key, went into the states.
  const auto sequences = random_sequences(3, 16, model.config().embedding_rows, true, 5);
  for (std::int64_t k = 0; k < 16; k += 5) {
    const ordered_json result =
        measure_sequences(model, autoregressive_measure(model.config(), 16, 0.3, k), sequences).result();
    for (const ordered_json& alpha : result["alpha"][0])
      EXPECT_NEAR(alpha.get<double>(), (harmonic(16) - harmonic(k)) / static_cast<double>(16 - k), 2e-6) << k;
  }
}

// Logits of these weights are nearly 0: query i gives each of its i keys and the slot 1 / (i + 1), i from 1.
TEST(AutoregressiveStates, ASlotTakesItsShareOfEveryRow) {
  const Transformer model =
      variant_model({.slot = KeySlot::key_value_bias, .positions = PositionEncoding::none});
  const ordered_json result = of_repeated(model, 16);
  EXPECT_NEAR(result["sinks"][0]["alpha"].get<double>(), (harmonic(17) - 1) / 16, 2e-3);
  EXPECT_NEAR(result["slot"]["alpha"].get<double>(), (harmonic(17) - 1) / 16, 2e-3);
}

TEST(AutoregressiveStates, UnderAlibiARepeatedTokenHasNoFirstSink) {
  const ordered_json result = of_repeated(variant_model({.positions = PositionEncoding::alibi}), 64, 0.074);
  // Below the uniform attention's 0.0741: near keys get more.
  EXPECT_EQ(result["sinks"][0]["sink_rate"], 0);
  EXPECT_LT(result["sinks"][0]["alpha"].get<double>(), 0.074);
}

// With all logits in [-x, x], x = ||q|| ||k|| / sqrt(d): A_t0 <= e^2x / (e^2x + t - 1), t from 1. The
// built-in model's logits are large enough for the bound to be far from uniform.
TEST(AutoregressiveStates, WithRotationARepeatedTokensAlphaIsBounded) {
  const Transformer model(std::make_shared<const Checkpoint>(Checkpoint::open(
                              std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "models" / "sums-llama")),
                          TransformerOptions());
  const std::int64_t length = 64;
  const ordered_json result = of_repeated(model, length);
  const ordered_json& products = result["query_key"]["norm_product"];
  double largest = 0;
  for (std::size_t l = 0; l < products.size(); ++l)
    for (std::size_t h = 0; h < products[l].size(); ++h) {
      const double x = products[l][h].get<double>() / std::sqrt(static_cast<double>(model.config().head_dim));
      double bound = 0;
      for (std::int64_t t = 1; t <= length; ++t)
        bound += 1 / (1 + static_cast<double>(t - 1) * std::exp(-2 * x)) / static_cast<double>(length);
      const double alpha = result["alpha"][l][h];
      EXPECT_LE(alpha, bound + 1e-6) << l << " " << h;
      EXPECT_GE(alpha, 1.0 / static_cast<double>(length));
      largest = std::max(largest, x);
    }
  EXPECT_GT(largest, 1);
}

TEST(AutoregressiveStates, SequencesOfAPassDoNotSeeEachOther) {
  const Transformer model = variant_model({});
  const auto sequences = random_sequences(11, 12, model.config().embedding_rows, false, 1);
  const AutoregressiveMeasure measure = autoregressive_measure(model.config(), 12, 0.3, 0);
  std::vector<std::size_t> progress;
  const ordered_json together = measure_sequences(model, measure, sequences, [&](std::size_t done) {
                                  progress.push_back(done);
                                }).result();
  EXPECT_THAT(progress, ::testing::ElementsAre(8, 11));
  double alpha = 0, massive = 0;
  for (const auto& sequence : sequences) {
    const ordered_json alone = measure_sequences(model, measure, {&sequence, 1}).result();
    alpha += alone["alpha"][1][2].get<double>() / 11;
    massive += alone["massive_ratio"][2].get<double>() / 11;
  }
  EXPECT_NEAR(together["alpha"][1][2].get<double>(), alpha, 1e-12);
  EXPECT_NEAR(together["massive_ratio"][2].get<double>(), massive, 1e-12);
}

TEST(AutoregressiveStates, KernelsHaveNoCosines) {
  EXPECT_TRUE(of_repeated(variant_model({.similarity = Similarity::mlp_kernel}), 4)["query_key"].is_null());
  EXPECT_FALSE(
      of_repeated(variant_model({.similarity = Similarity::linear_kernel}), 4)["query_key"].is_null());
}

TEST(RandomSequences, AreDrawnFromTheVocabulary) {
  const auto random = random_sequences(20, 50, 7, false, 3), repeated = random_sequences(20, 50, 7, true, 3);
  std::set<std::int32_t> seen;
  for (const auto& sequence : random) seen.insert(sequence.begin(), sequence.end());
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  std::set<std::int32_t> tokens;
  for (const auto& sequence : repeated) {
    EXPECT_THAT(sequence, ::testing::Each(sequence.front()));
    tokens.insert(sequence.front());
  }
  EXPECT_GT(tokens.size(), 3U);
  EXPECT_EQ(random, random_sequences(20, 50, 7, false, 3));
  EXPECT_NE(random, random_sequences(20, 50, 7, false, 4));
}

}  // namespace
}  // namespace sinkscope
