#include "ops/differentiable/adamw.h"

#include <cmath>

#include "passes.h"

namespace sinkscope {
namespace {

std::vector<AdamwParameter> parameters(at::ScalarType type) {
  at::manual_seed(8);
  std::vector<AdamwParameter> made;
  for (const std::int64_t count : {1, 17, 70000}) {
    const auto values = [&](double scale) { return (at::randn({count}) * scale).to(type); };
    made.push_back({values(1), values(1), values(0.1), values(0.1).abs(), count == 17 ? 0.0 : 0.1});
  }
  return made;
}

TEST(Adamw, StepsAsInFloat64) {
  auto ours = parameters(at::kFloat), exact = parameters(at::kDouble);
  for (std::int64_t step = 1; step <= 5; ++step) {
    AdamwOptions options;
    options.step = step;
    options.gradient_scale = 0.5;
    adamw_step(Backend::cpu, ours, options);
    adamw_step(Backend::aten, exact, options);
  }
  for (std::size_t i = 0; i < ours.size(); ++i) {
    EXPECT_TRUE(at::allclose(ours[i].parameter.to(at::kDouble), exact[i].parameter, 1e-6, 1e-6)) << i;
    EXPECT_TRUE(at::allclose(ours[i].first_moment.to(at::kDouble), exact[i].first_moment, 1e-5, 1e-6)) << i;
    EXPECT_TRUE(at::allclose(ours[i].second_moment.to(at::kDouble), exact[i].second_moment, 1e-5, 1e-6)) << i;
  }
}

// One step by hand: m / (1 - beta1) = g and v / (1 - beta2) = g^2 from zero moments.
TEST(Adamw, FirstStepIsTheSignOfTheGradient) {
  const AdamwParameter p{at::full({2}, 2.0), at::tensor({3.0F, -0.5F}), at::zeros({2}), at::zeros({2}), 0.1};
  AdamwOptions options;
  options.learning_rate = 0.01;
  adamw_step(Backend::cpu, {&p, 1}, options);
  const double decayed = 2.0 * (1 - 0.01 * 0.1);
  EXPECT_NEAR(p.parameter[0].item<double>(), decayed - 0.01, 1e-6);
  EXPECT_NEAR(p.parameter[1].item<double>(), decayed + 0.01, 1e-6);
}

TEST(Adamw, EveryOptionCounts) {
  const auto after = [](const AdamwOptions& options, double decay) {
    auto p = parameters(at::kFloat);
    for (AdamwParameter& parameter : p) parameter.weight_decay = decay;
    adamw_step(Backend::cpu, p, options);
    return p[1].parameter;
  };
  AdamwOptions base;
  base.step = 3;
  const at::Tensor expected = after(base, 0);
  std::vector<AdamwOptions> changed(6, base);
  changed[0].learning_rate = 2e-3;
  changed[1].beta1 = 0.8;
  changed[2].beta2 = 0.9;
  changed[3].eps = 0.1;
  changed[4].step = 4;
  changed[5].gradient_scale = 0.1;
  for (std::size_t i = 0; i < changed.size(); ++i)
    EXPECT_FALSE(at::equal(after(changed[i], 0), expected)) << i;
  EXPECT_FALSE(at::equal(after(base, 0.1), expected));
}

TEST(Adamw, LeavesParametersWithoutGradient) {
  AdamwParameter p{at::ones({3}), {}, at::ones({3}), at::ones({3}), 0.1};
  adamw_step(Backend::cpu, {&p, 1}, {});
  EXPECT_TRUE(at::equal(p.parameter, at::ones({3})));
}

TEST(Adamw, HasTheSameBitsForAllThreadCounts) {
  std::vector<at::Tensor> results;
  std::vector<double> norms;
  for (const int threads : {1, 2, 3}) {
    set_thread_count(threads);
    auto p = parameters(at::kFloat);
    adamw_step(Backend::cpu, p, {});
    results.push_back(p[2].parameter);
    norms.push_back(gradient_norm(Backend::cpu, {p[0].gradient, p[2].gradient, p[1].gradient}));
  }
  set_thread_count(0);
  EXPECT_TRUE(at::equal(results[0], results[1]));
  EXPECT_TRUE(at::equal(results[0], results[2]));
  EXPECT_EQ(norms[0], norms[1]);
  EXPECT_EQ(norms[0], norms[2]);
}

TEST(Adamw, NamesShapesAndMemoryThatDoNotFit) {
  AdamwParameter p{at::ones({3}), at::ones({2}), at::ones({3}), at::ones({3})};
  EXPECT_THROW(adamw_step(Backend::cpu, {&p, 1}, {}), c10::Error);
  p = {at::ones({3}, at::kDouble), at::ones({3}), at::ones({3}), at::ones({3})};
  EXPECT_THROW(adamw_step(Backend::cpu, {&p, 1}, {}), c10::Error);
}

TEST(GradientNorm, IsOverAllTensorsInFloat64) {
  const at::Tensor small = at::full({1}, 3.0F), large = at::full({200000}, 1e-3F);
  const double expected = std::sqrt(9 + 200000 * std::pow(static_cast<double>(1e-3F), 2));
  for (const Backend backend : {Backend::cpu, Backend::aten})
    EXPECT_NEAR(gradient_norm(backend, {small, at::Tensor(), large}), expected, 1e-6);
  EXPECT_EQ(gradient_norm(Backend::cpu, {}), 0);
}

TEST(ClippingScale, BringsTheNormDown) {
  EXPECT_EQ(clipping_scale(0.5, 1.0), 1.0);
  EXPECT_NEAR(clipping_scale(4.0, 1.0), 0.25, 1e-6);
}

}  // namespace
}  // namespace sinkscope
