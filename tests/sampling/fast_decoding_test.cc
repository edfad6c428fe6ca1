// Thresholds and caches: what they must leave as it is.
#include <sinkscope/dream_sampler.h>
#include <sinkscope/llada_sampler.h>

#include <algorithm>

#include "sampling/golden_steps.h"

namespace sinkscope {
namespace {

using testing::load;

std::vector<SampleRequest> three_prompts() {
  return {{{5, 6, 7, 8, 9, 10}, 1}, {{11}, 2}, {{3, 4, 3, 4, 3, 4, 3, 4, 3}, 3}};
}

template <typename Options>
Options small(std::int64_t mask_id) {
  Options options;
  options.gen_len = 24;
  options.steps = 24;
  options.block_len = 8;
  options.mask_id = static_cast<std::int32_t>(mask_id);
  options.forbid_mask = true;
  return options;
}

std::vector<SampleResult> sample(const Transformer& model, std::span<const SampleRequest> requests,
                                 const LladaOptions& options, const StepObserver& observer = {}) {
  return sample_llada(model, requests, options, observer);
}
std::vector<SampleResult> sample(const Transformer& model, std::span<const SampleRequest> requests,
                                 const DreamOptions& options, const StepObserver& observer = {}) {
  return sample_dream(model, requests, options, observer);
}

// Every combination fills everything, batch or not, and the rows of a batch are those of runs alone though
// they end at different steps.
template <typename Options>
void expect_rows_as_alone(const std::string& fixture) {
  const Transformer model = load(fixture);
  const std::vector<SampleRequest> requests = three_prompts();
  for (const CacheMode cache : {CacheMode::none, CacheMode::prefix, CacheMode::dual})
    for (const double threshold : {0.0, 0.03, 1.0}) {
      Options options = small<Options>(*model.config().mask_id);
      options.cache = cache;
      options.threshold = threshold;
      options.sinks.top_k = 1;
      const auto together = sample(model, requests, options);
      for (std::size_t b = 0; b < requests.size(); ++b) {
        const SampleResult alone = sample(model, std::span(requests).subspan(b, 1), options)[0];
        EXPECT_EQ(alone.ids, together[b].ids) << static_cast<int>(cache) << " " << threshold;
        EXPECT_EQ(alone.forward_passes, together[b].forward_passes);
        EXPECT_EQ(together[b].masks_left, 0);
      }
    }
}

TEST(FastDecoding, RowsOfABatchAreAsAloneLlada) { expect_rows_as_alone<LladaOptions>("llada-random"); }
TEST(FastDecoding, RowsOfABatchAreAsAloneDream) { expect_rows_as_alone<DreamOptions>("dream-random"); }

// Nobody is as sure as that: one position a step, in the order of confidence, which is the schedule of one a
// step.
TEST(FastDecoding, AThresholdThatNobodyReachesOpensOneAStep) {
  const Transformer model = load("llada-random");
  LladaOptions options = small<LladaOptions>(*model.config().mask_id);
  const auto exact = sample_llada(model, three_prompts(), options);
  options.threshold = 1.0;
  const auto fast = sample_llada(model, three_prompts(), options);
  for (std::size_t b = 0; b < 3; ++b) {
    EXPECT_EQ(fast[b].ids, exact[b].ids);
    EXPECT_EQ(fast[b].forward_passes, 24);
  }
}

TEST(FastDecoding, AThresholdThatAllReachTakesOneStepABlock) {
  const Transformer model = load("llada-random");
  LladaOptions options = small<LladaOptions>(*model.config().mask_id);
  options.threshold = 0.0;
  for (const SampleResult& result : sample_llada(model, three_prompts(), options))
    EXPECT_EQ(result.forward_passes, 3);
}

// With one block and nothing before it a prefix cache computes everything at every step.
TEST(FastDecoding, ACacheThatKeepsNothingChangesNothing) {
  const Transformer model = load("llada-random");
  LladaOptions options = small<LladaOptions>(*model.config().mask_id);
  options.block_len = options.gen_len;
  const std::vector<SampleRequest> empty_prompt{{{}, 1}};
  const auto exact = sample_llada(model, empty_prompt, options);
  for (const CacheMode cache : {CacheMode::prefix, CacheMode::dual}) {
    options.cache = cache;
    EXPECT_EQ(sample_llada(model, empty_prompt, options)[0].ids, exact[0].ids);
  }
}

TEST(FastDecoding, StepsOfADualCacheComputeTheBlockAlone) {
  const Transformer model = load("llada-random");
  LladaOptions options = small<LladaOptions>(*model.config().mask_id);
  options.cache = CacheMode::dual;
  const std::vector<SampleRequest> request{{{5, 6, 7, 8}, 1}};
  sample_llada(model, request, options, [&](std::size_t, const StepRecord& step) {
    // Every computed query's row sums to one: the columns of a layer and head sum to the number of queries.
    const double queries = step.column_sum.sum(at::IntArrayRef{0, 3})[0][0].item<double>();
    EXPECT_NEAR(queries, step.step % 8 == 0 ? 28 : 8, 1e-3) << step.step;
  });
}

// A predicted mask id fills nothing; the run ends all the same.
TEST(FastDecoding, EndsThoughMasksArePredicted) {
  const Transformer model = load("llada-random");
  for (std::int32_t mask = 0; mask < 40; ++mask) {  // any id may play the mask; some are predicted
    LladaOptions options = small<LladaOptions>(mask);
    options.forbid_mask = false;
    options.threshold = 0.5;
    options.cache = CacheMode::dual;
    const auto result = sample_llada(model, std::vector<SampleRequest>{{{1, 2}, 1}}, options)[0];
    EXPECT_LE(result.forward_passes, 24 + 3);
  }
}

TEST(FastDecoding, DreamsFirstTokenOfABlockComesFromTheFullPass) {
  const Transformer model = load("dream-random");
  DreamOptions options = small<DreamOptions>(*model.config().mask_id);
  options.cache = CacheMode::dual;
  options.alg = DreamAlgorithm::entropy;
  std::vector<std::int32_t> before;
  const std::vector<SampleRequest> request{{{5, 6, 7, 8}, 1}};
  sample_dream(model, request, options, [&](std::size_t, const StepRecord& step) {
    if (!before.empty() && step.step == 1) {
      EXPECT_NE(step.state[4], options.mask_id);
      EXPECT_EQ(std::count(step.state.begin(), step.state.end(), options.mask_id), 23);
    }
    before.assign(step.state.begin(), step.state.end());
  });
}

}  // namespace
}  // namespace sinkscope
