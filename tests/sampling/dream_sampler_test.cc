#include <sinkscope/dream_sampler.h>
#include <sinkscope/error.h>

#include <algorithm>

#include "sampling/golden_steps.h"

namespace sinkscope {
namespace {

using testing::expect_step;
using testing::Golden;
using testing::load;
using testing::requests_of;

DreamAlgorithm algorithm(const std::string& name) {
  if (name == "entropy") return DreamAlgorithm::entropy;
  if (name == "maskgit_plus") return DreamAlgorithm::maskgit_plus;
  return name == "topk_margin" ? DreamAlgorithm::topk_margin : DreamAlgorithm::origin;
}

DreamOptions options_of(const nlohmann::json& c) {
  DreamOptions options;
  options.mask_id = c.at("mask_id");
  options.steps = c.at("steps");
  options.gen_len = c.at("gen_length");
  options.alg = algorithm(c.at("alg"));
  options.temperature = c.value("temperature", 0.0);
  options.top_p = c.value("top_p", 1.0);
  options.top_k = c.value("top_k", 0);
  options.alg_temp = c.value("alg_temp", 0.0);
  if (c.contains("sink")) {
    options.sinks.top_k = c.at("sink").at("top_k");
    options.sinks.epsilon = c.at("sink").at("eps");
  }
  return options;
}

class GoldenDream : public ::testing::TestWithParam<bool> {};

TEST_P(GoldenDream, EveryCaseEqualsTheFixture) {
  const Golden golden("dream-random");
  const Transformer model = load("dream-random", GetParam());
  int cases = 0;
  for (const auto& [name, c] : golden.cases().items()) {
    if (c.at("kind") != "dream_generate") continue;
    ++cases;
    const auto check = [&, &name = name](std::size_t b, const StepRecord& step) {
      expect_step(golden, name, static_cast<std::int64_t>(b), step);
    };
    const auto results =
        sample_dream(model, requests_of(golden.tensor(name + ".prompt"), c), options_of(c), check);
    const std::vector<std::int32_t>& ids = results.at(0).ids;
    EXPECT_TRUE(at::equal(at::tensor(std::vector<std::int64_t>(ids.begin(), ids.end())),
                          golden.tensor(name + ".final")[0]))
        << name;
  }
  EXPECT_EQ(cases, 8);
}

INSTANTIATE_TEST_SUITE_P(Backends, GoldenDream, ::testing::Bool());

}  // namespace
}  // namespace sinkscope
