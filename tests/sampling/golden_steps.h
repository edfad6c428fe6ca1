// Runs of samplers against the golden fixtures.
#pragma once

#include <sinkscope/denoising.h>
#include <sinkscope/transformer.h>

#include <cmath>

#include "support/small_model.h"

namespace sinkscope::testing {

inline std::vector<SampleRequest> requests_of(const at::Tensor& prompts, const nlohmann::json& c) {
  std::vector<SampleRequest> requests;
  for (std::int64_t b = 0; b < prompts.size(0); ++b) {
    SampleRequest request;
    request.seed = c.value("seed", 0);
    for (std::int64_t i = 0; i < prompts.size(1); ++i)
      request.prompt.push_back(prompts[b][i].item<std::int32_t>());
    requests.push_back(std::move(request));
  }
  return requests;
}

// Compares one step of one sample with the fixture's arrays.
inline void expect_step(const Golden& golden, const std::string& name, std::int64_t b,
                        const StepRecord& step) {
  const std::string where = name + " sample " + std::to_string(b) + " step " + std::to_string(step.step);
  const at::Tensor states = golden.tensor(name + ".states")[step.step][b];
  for (std::int64_t i = 0; i < states.size(0); ++i)
    ASSERT_EQ(step.state[i], states[i].item<std::int64_t>()) << where << " position " << i;
  // Dream's `origin` ranks nothing.
  for (std::int64_t i = 0; golden.has(name + ".proposed") && i < states.size(0); ++i) {
    const at::Tensor proposed = golden.tensor(name + ".proposed")[step.step][b];
    const at::Tensor confidence = golden.tensor(name + ".confidence")[step.step][b];
    if (step.proposed[i] >= 0) {
      ASSERT_EQ(step.proposed[i], proposed[i].item<std::int64_t>()) << where << " position " << i;
    }
    const float expected = confidence[i].item<float>();
    ASSERT_EQ(std::isinf(expected), std::isnan(step.confidence[i])) << where << " position " << i;
    if (!std::isinf(expected)) {
      ASSERT_NEAR(step.confidence[i], expected, 1e-4) << where << " position " << i;
    }
  }
  EXPECT_TRUE(
      near_columns(step.column_sum, golden.tensor(name + ".column_sum_by_class")[step.step].select(1, b)))
      << where;
  if (golden.has(name + ".masked_keys")) {
    const at::Tensor removed = golden.tensor(name + ".masked_keys")[step.step][b].contiguous();
    for (std::int64_t i = 0; i < removed.numel(); ++i)
      ASSERT_EQ(step.removed[i], removed.data_ptr<int>()[i]) << where << " cell " << i;
  }
}

}  // namespace sinkscope::testing
