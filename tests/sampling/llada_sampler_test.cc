#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include "sampling/golden_steps.h"

namespace sinkscope {
namespace {

using testing::expect_step;
using testing::Golden;
using testing::load;
using testing::requests_of;

LladaOptions options_of(const nlohmann::json& c) {
  LladaOptions options;
  options.mask_id = c.at("mask_id");
  options.steps = c.at("steps");
  options.gen_len = c.at("gen_length");
  options.block_len = c.at("block_length");
  options.temperature = c.value("temperature", 0.0);
  options.cfg = c.value("cfg_scale", 0.0);
  if (c.value("remasking", "") == "random") options.remasking = Remasking::random;
  if (c.contains("sink")) {
    options.sinks.top_k = c.at("sink").at("top_k");
    options.sinks.epsilon = c.at("sink").at("eps");
  }
  return options;
}

class GoldenRuns : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenRuns, EveryCaseEqualsTheFixture) {
  const auto& [fixture, plain_operations] = GetParam();
  if (!std::filesystem::exists(testing::golden_dir(fixture)))
    GTEST_SKIP() << "no " << testing::golden_dir(fixture);
  const Golden golden(fixture);
  const Transformer model = load(fixture, plain_operations);
  int cases = 0;
  for (const auto& [name, c] : golden.cases().items()) {
    if (c.at("kind") != "llada_generate") continue;
    ++cases;
    const auto check = [&, &name = name](std::size_t b, const StepRecord& step) {
      expect_step(golden, name, static_cast<std::int64_t>(b), step);
    };
    const auto results =
        sample_llada(model, requests_of(golden.tensor(name + ".prompt"), c), options_of(c), check);
    const at::Tensor final = golden.tensor(name + ".final");
    for (std::size_t b = 0; b < results.size(); ++b) {
      const std::vector<std::int32_t>& ids = results[b].ids;
      EXPECT_TRUE(at::equal(at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())), final[b])) << name;
      EXPECT_EQ(results[b].masks_left, (final[b] == c.at("mask_id").get<int>()).sum().item<int>()) << name;
    }
  }
  EXPECT_GE(cases, 3);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenRuns,
                         ::testing::Values(std::tuple{"llada-random", false},
                                           std::tuple{"llada-random", true},
                                           std::tuple{"mmada-random", false},
                                           std::tuple{"tiny-llada", false}));

LladaOptions small_options() {
  LladaOptions options;
  options.mask_id = 299;
  options.steps = 8;
  options.gen_len = 16;
  options.block_len = 8;
  return options;
}

TEST(LladaSampler, ABatchOfDifferentLengthsEqualsItsRunsAlone) {
  const Transformer model = load("llada-random");
  LladaOptions options = small_options();
  options.temperature = 0.7;
  options.sinks.top_k = 2;
  const std::vector<SampleRequest> requests{{{3, 4, 5}, 1}, {{9, 8, 7, 6, 5, 4, 3, 2, 10}, 2}, {{}, 3}};
  const auto together = sample_llada(model, requests, options);
  for (std::size_t b = 0; b < requests.size(); ++b)
    EXPECT_EQ(sample_llada(model, std::span(requests).subspan(b, 1), options)[0].ids, together[b].ids)
        << "row " << b;
}

TEST(LladaSampler, ExactlyGenLenTokensAreAddedWhateverThePromptsLength) {
  const Transformer model = load("llada-random");
  for (const std::size_t length : {0, 1, 7, 8, 9}) {
    const std::vector<SampleRequest> request{{std::vector<std::int32_t>(length, 5), 0}};
    EXPECT_EQ(sample_llada(model, request, small_options())[0].ids.size(), length + 16);
  }
}

TEST(LladaSampler, ForbiddingTheMaskLeavesNone) {
  const Transformer model = load("llada-random");
  LladaOptions options = small_options();
  options.forbid_mask = true;
  for (std::int32_t first = 0; first < 20; ++first) {
    const std::vector<SampleRequest> request{{{first, 2, 3}, 0}};
    EXPECT_EQ(sample_llada(model, request, options)[0].masks_left, 0);
  }
}

TEST(LladaSampler, AMaskInThePromptIsFilledOnceItsBlockIsReached) {
  const Transformer model = load("llada-random");
  LladaOptions options = small_options();
  options.forbid_mask = true;
  options.steps = 32;  // more steps than masks: some open nothing
  const std::vector<SampleRequest> request{{{5, 299, 7}, 0}};
  std::int64_t masked_queries = -1;
  const auto result = sample_llada(model, request, options, [&](std::size_t, const StepRecord& step) {
    if (step.step == 0) masked_queries = std::lround(step.column_sum[2][0][0].sum().item<float>());
    EXPECT_FALSE(step.step == 0 && std::isnan(step.confidence[1]));
  });
  EXPECT_EQ(masked_queries, 17);       // the prompt's mask is a masked query, not a prompt query
  EXPECT_EQ(result[0].masks_left, 1);  // the schedule counts the block's masks, one position is left over
}

TEST(LladaSampler, ASampleDependsOnItsSeedOnly) {
  const Transformer model = load("llada-random");
  LladaOptions options = small_options();
  options.temperature = 1;
  const auto ids = [&](std::uint64_t seed) {
    return sample_llada(model, std::vector<SampleRequest>{{{3, 4}, seed}}, options)[0].ids;
  };
  EXPECT_EQ(ids(5), ids(5));
  EXPECT_NE(ids(5), ids(6));
}

TEST(LladaSampler, TheEndTokenIsNeverPredictedWithLogitsEosInf) {
  const Transformer model = load("llada-random");
  LladaOptions options = small_options();
  const std::vector<SampleRequest> request{{{5, 6}, 0}};
  const auto plain = sample_llada(model, request, options)[0].ids;
  options.eos_id = plain.back();
  options.logits_eos_inf = true;
  const auto without = sample_llada(model, request, options)[0].ids;
  EXPECT_EQ(std::count(without.begin() + 2, without.end(), *options.eos_id), 0);
}

TEST(LladaSampler, ConfidenceEosEotInfRanksEndTokensLastAtAnyTemperature) {
  const Transformer model = load("llada-random");
  for (const double temperature : {0.0, 0.5}) {
    LladaOptions options = small_options();
    options.temperature = temperature;
    const std::vector<SampleRequest> request{{{5, 6}, 0}};
    std::vector<std::int32_t> proposed;
    sample_llada(model, request, options, [&](std::size_t, const StepRecord& step) {
      if (step.step == 0) proposed.assign(step.proposed.begin(), step.proposed.end());
    });
    options.eos_id = proposed[2];
    options.eot_id = proposed[4];
    options.confidence_eos_eot_inf = true;
    sample_llada(model, request, options, [&](std::size_t, const StepRecord& step) {
      if (step.step != 0) return;
      EXPECT_EQ(step.proposed[2], proposed[2]);  // the prediction stays
      EXPECT_EQ(step.confidence[2], 0);
      EXPECT_EQ(step.confidence[4], 0);
    });
  }
}

std::string message_of(const LladaOptions& options) {
  try {
    validate(options);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

// (gen_len, block_len, steps) -> what the refusal must name; empty where the split works.
TEST(LladaOptions, SplitsThatDoNotWorkNameTheNearestThatDo) {
  const std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::string>> table{
      {128, 32, 128, ""},
      {128, 32, 8, ""},
      {64, 64, 1, ""},
      {32, 32, 64, ""},
      {30, 32, 32, "--gen-len 32"},
      {128, 32, 6, "--steps 4 or 8"},
      {128, 48, 128, "--gen-len 96 or 144"},
      {128, 32, 2, "--steps 4"}};
  for (const auto& [gen_len, block_len, steps, named] : table) {
    LladaOptions options;
    options.gen_len = gen_len;
    options.block_len = block_len;
    options.steps = steps;
    const std::string message = message_of(options);
    EXPECT_EQ(named.empty(), message.empty()) << message;
    EXPECT_THAT(message, ::testing::HasSubstr(named));
  }
}

TEST(LladaOptions, ImpossibleNumbersAreNamed) {
  const auto with = [](auto change) {
    LladaOptions options;
    change(options);
    return message_of(options);
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(with([](auto& o) { o.steps = 0; }), HasSubstr("--steps"));
  EXPECT_THAT(with([](auto& o) { o.gen_len = -1; }), HasSubstr("--gen-len"));
  EXPECT_THAT(with([](auto& o) { o.block_len = 0; }), HasSubstr("--block-len"));
  EXPECT_THAT(with([](auto& o) { o.temperature = -0.5; }), HasSubstr("--temperature"));
  EXPECT_THAT(with([](auto& o) { o.temperature = NAN; }), HasSubstr("--temperature"));
  EXPECT_THAT(with([](auto& o) { o.cfg = INFINITY; }), HasSubstr("--cfg"));
  EXPECT_THAT(with([](auto& o) { o.logits_eos_inf = true; }), HasSubstr("--logits-eos-inf"));
  EXPECT_THAT(with([](auto& o) { o.sinks.top_k = -1; }), HasSubstr("--sink-top-k"));
}

}  // namespace
}  // namespace sinkscope
