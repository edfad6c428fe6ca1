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

DreamOptions small_options(const Transformer& model) {
  DreamOptions options;
  options.gen_len = 16;
  options.steps = 8;
  options.mask_id = static_cast<std::int32_t>(*model.config().mask_id);
  options.forbid_mask = true;
  options.alg = DreamAlgorithm::entropy;
  return options;
}

// Rows with 16, 3, 1 and no masks in one batch, of different lengths.
TEST(SampleDream, RowsWithUnequalMasksAreAsAlone) {
  const Transformer model = load("dream-random");
  DreamOptions options = small_options(model);
  options.gen_len = 1;
  options.temperature = 0.5;
  options.top_p = 0.9;
  options.alg_temp = 0.3;
  options.sinks.top_k = 2;
  const std::int32_t m = options.mask_id;
  const std::vector<SampleRequest> requests{{{5, m, m, m, m, 9}, 1}, {{1, 2, 3}, 2}, {{m}, 3}, {{}, 4}};
  const auto together = sample_dream(model, requests, options);
  for (std::size_t b = 0; b < requests.size(); ++b) {
    EXPECT_EQ(sample_dream(model, std::span(requests).subspan(b, 1), options)[0].ids, together[b].ids) << b;
    EXPECT_EQ(together[b].masks_left, 0);
    for (std::size_t i = 0; i < requests[b].prompt.size(); ++i)
      if (requests[b].prompt[i] != m) {
        EXPECT_EQ(together[b].ids[i], requests[b].prompt[i]);
      }
  }
}

// A temperature near 0 makes every position sure of itself: entropies tie at 0, and the lowest index wins, so
// that the row fills from left to right. Confidence from before the temperature tells the positions apart.
TEST(SampleDream, TemperatureSaturatesConfidenceUnlessItIsTakenBefore) {
  const Transformer model = load("dream-random");
  DreamOptions options = small_options(model);
  options.temperature = 1e-4;
  options.steps = 16;
  const std::vector<SampleRequest> request{{{5, 6, 7}, 1}};
  const auto tempered = sample_dream(model, request, options)[0];
  EXPECT_GT(tempered.confidence_ties, 0);
  options.confidence_from = ConfidenceSource::untempered;
  const auto untempered = sample_dream(model, request, options)[0];
  EXPECT_EQ(untempered.confidence_ties, 0);
}

// Confidences too far apart for exp(confidence / alg_temp): the draw still opens distinct masked positions.
TEST(SampleDream, AlgTempAlwaysOpensAsManyAsTheSchedule) {
  const Transformer model = load("dream-random");
  DreamOptions options = small_options(model);
  options.alg_temp = 1e-5;
  options.steps = 4;
  const std::vector<SampleRequest> request{{{5, 6, 7}, 1}};
  std::vector<std::int64_t> masks;
  sample_dream(model, request, options, [&](std::size_t, const StepRecord& step) {
    masks.push_back(std::count(step.state.begin(), step.state.end(), options.mask_id));
  });
  // time steps 1, 0.75, 0.5, 0.25, 0.001: int(16 / 4), int(12 / 3), int(8 / 2), the rest
  EXPECT_EQ(masks.size(), 4U);
  EXPECT_EQ(masks[0], 16);
  EXPECT_TRUE(std::is_sorted(masks.rbegin(), masks.rend()));
  EXPECT_LT(masks[3], 8);
}

TEST(SampleDream, EqualsItsSeedAndDiffersFromOthers) {
  const Transformer model = load("dream-random");
  for (const DreamAlgorithm alg : {DreamAlgorithm::origin, DreamAlgorithm::maskgit_plus}) {
    DreamOptions options = small_options(model);
    options.alg = alg;
    options.temperature = 1;
    const auto ids = [&](std::uint64_t seed) {
      return sample_dream(model, std::vector<SampleRequest>{{{3, 4}, seed}}, options)[0].ids;
    };
    EXPECT_EQ(ids(1), ids(1));
    EXPECT_NE(ids(1), ids(2));
  }
}

TEST(DreamOptions, ImpossibleNumbersAreNamed) {
  const auto message = [](auto change) {
    DreamOptions options;
    change(options);
    try {
      validate(options);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(message([](DreamOptions& o) { o.eps = 0; }), HasSubstr("--eps is 0"));
  EXPECT_THAT(message([](DreamOptions& o) { o.top_p = 1.0001; }), HasSubstr("--top-p is 1.0001"));
  EXPECT_THAT(message([](DreamOptions& o) { o.top_k = -1; }), HasSubstr("--top-k is -1"));
  EXPECT_THAT(message([](DreamOptions& o) { o.threshold = 1.5; }), HasSubstr("--threshold is 1.5"));
  EXPECT_THAT(message([](DreamOptions& o) { o.cache = CacheMode::dual; }),
              HasSubstr("--alg origin fills no blocks"));
  EXPECT_THAT(message([](DreamOptions& o) {
                o.gen_len = 30;
                o.steps = 7;
              }),
              ::testing::IsEmpty());  // no blocks
}

}  // namespace
}  // namespace sinkscope
