#include <sinkscope/autoregressive_sampler.h>
#include <sinkscope/error.h>

#include "sampling/golden_steps.h"

namespace sinkscope {
namespace {

using testing::Golden;
using testing::load;
using testing::near;
using testing::requests_of;

AutoregressiveOptions options_of(const nlohmann::json& c) {
  AutoregressiveOptions options;
  options.gen_len = c.at("new_tokens");
  options.capture = Capture::full;
  if (c.contains("sink")) {
    options.sinks.top_k = c.at("sink").at("top_k");
    options.sinks.epsilon = c.at("sink").at("eps");
  }
  return options;
}

void expect_token(const Golden& golden, const std::string& name, const TokenRecord& token) {
  const std::string where = name + " token " + std::to_string(token.step);
  EXPECT_TRUE(near(token.last_row, golden.tensor(name + ".row." + std::to_string(token.step)), 1e-4))
      << where;
  const at::Tensor logits = golden.tensor(name + ".logits")[token.step];
  for (std::int64_t i = 0; i < logits.size(0); ++i)
    ASSERT_NEAR(token.logits[i], logits[i].item<float>(), 2e-4) << where << " id " << i;
  const std::string keys = name + ".masked_keys." + std::to_string(token.step);
  if (!golden.has(keys)) return;
  const at::Tensor removed = golden.tensor(keys).contiguous();
  ASSERT_EQ(removed.numel(), static_cast<std::int64_t>(token.removed.size())) << where;
  for (std::int64_t i = 0; i < removed.numel(); ++i)
    ASSERT_EQ(token.removed[i], removed.data_ptr<int>()[i]) << where << " cell " << i;
}

class GoldenDecoding : public ::testing::TestWithParam<std::tuple<std::string, bool>> {};

TEST_P(GoldenDecoding, EveryCaseEqualsTheFixture) {
  const auto& [fixture, plain_operations] = GetParam();
  if (!std::filesystem::exists(testing::golden_dir(fixture)))
    GTEST_SKIP() << "no " << testing::golden_dir(fixture);
  const Golden golden(fixture);
  const Transformer model = load(fixture, plain_operations);
  int cases = 0;
  for (const auto& [name, c] : golden.cases().items()) {
    if (c.at("kind") != "ar_generate") continue;
    ++cases;
    const auto check = [&, &name = name](std::size_t, const TokenRecord& token) {
      expect_token(golden, name, token);
    };
    const auto results =
        sample_autoregressive(model, requests_of(golden.tensor(name + ".prompt"), c), options_of(c), check);
    const std::vector<std::int32_t>& ids = results.at(0).ids;
    EXPECT_TRUE(at::equal(at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())),
                          golden.tensor(name + ".final")[0]))
        << name;
  }
  EXPECT_GE(cases, 1);
}

INSTANTIATE_TEST_SUITE_P(Fixtures, GoldenDecoding,
                         ::testing::Values(std::tuple{"llama-random", false},
                                           std::tuple{"llama-random", true},
                                           std::tuple{"qwen2-random", false},
                                           std::tuple{"tiny-llama", false}));

AutoregressiveOptions small_options() {
  AutoregressiveOptions options;
  options.gen_len = 12;
  return options;
}

// Prompts 0, 1, 2 and 5 tokens longer, sinks masked, ends at different tokens: every row as alone.
TEST(SampleAutoregressive, RowsOfABatchAreAsAlone) {
  const Transformer model = load("llama-random");
  AutoregressiveOptions options = small_options();
  options.temperature = 0.8;
  options.top_p = 0.95;
  options.top_k = 40;
  options.sinks.top_k = 2;
  for (std::int32_t id = 0; id < 60; ++id) options.end_ids.push_back(id);
  const std::vector<SampleRequest> requests{{{5}, 1}, {{5, 6}, 2}, {{5, 6, 7}, 3}, {{5, 6, 7, 8, 9, 10}, 4}};
  const auto together = sample_autoregressive(model, requests, options);
  for (std::size_t b = 0; b < requests.size(); ++b) {
    const auto alone = sample_autoregressive(model, std::span(requests).subspan(b, 1), options)[0];
    EXPECT_EQ(alone.ids, together[b].ids) << b;
    EXPECT_EQ(alone.steps, together[b].steps);
  }
}

TEST(SampleAutoregressive, StopsBehindAnEndTokenAndWhereItIsTold) {
  const Transformer model = load("llama-random");
  AutoregressiveOptions options = small_options();
  const std::vector<SampleRequest> request{{{5, 6, 7}, 1}};
  const auto all = sample_autoregressive(model, request, options)[0];
  EXPECT_EQ(all.ids.size(), 15U);
  EXPECT_EQ(all.forward_passes, 12);
  options.end_ids = {all.ids[6]};
  const auto ended = sample_autoregressive(model, request, options)[0];
  EXPECT_EQ(ended.ids.back(), all.ids[6]);
  EXPECT_LE(ended.ids.size(), 7U);
  options.end_ids.clear();
  options.stop = [](std::size_t, std::span<const std::int32_t> generated) { return generated.size() == 5; };
  EXPECT_EQ(sample_autoregressive(model, request, options)[0].ids.size(), 8U);
}

// Recording and a no-op intervention change nothing, to the bit.
TEST(SampleAutoregressive, LookingChangesNothing) {
  const Transformer model = load("llama-random");
  AutoregressiveOptions options = small_options();
  const std::vector<SampleRequest> request{{{5, 6, 7}, 1}};
  options.capture = Capture::none;
  const auto plain = sample_autoregressive(model, request, options)[0].ids;
  options.capture = Capture::full;
  options.sinks.top_k = 3;
  options.sinks.epsilon = 1e6;  // nothing is a sink
  EXPECT_EQ(sample_autoregressive(model, request, options, [](std::size_t, const TokenRecord&) {})[0].ids,
            plain);
}

TEST(SampleAutoregressive, AnEmptyPromptIsRefused) {
  const Transformer model = load("llama-random");
  EXPECT_THROW(sample_autoregressive(model, std::vector<SampleRequest>{{{}, 1}}, small_options()),
               UsageError);
}

}  // namespace
}  // namespace sinkscope
