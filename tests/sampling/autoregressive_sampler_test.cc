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

}  // namespace
}  // namespace sinkscope
