// The forward pass that is trained against the one that everything else runs.
#include "train/trainable_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sinkscope/transformer.h>

#include "ops/differentiable/cross_entropy.h"
#include "support/small_model.h"
#include "train/small_run.h"
#include "train/training_checkpoint.h"

namespace sinkscope {
namespace {

struct Case {
  const char* name;
  const char* objective;
  nlohmann::json model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class TrainableModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(TrainableModelTest, ItsCheckpointGivesTheSameLogits) {
  SmallRun run;
  run.config["objective"] = GetParam().objective;
  run.config["model"].update(GetParam().model);
  TrainConfig config = run.read();
  config.model.embedding_rows = config.model.head_rows = 40;
  config.model.mask_id = GetParam().objective[0] == 'm' ? std::optional<std::int64_t>(39) : std::nullopt;
  config.model.bos_id = 37;
  config.model.pad_id = 38;
  config.model.eos_ids = {38};
  TrainingState state = new_state(config, at::kCPU);
  at::manual_seed(3);
  {
    const at::NoGradGuard no_gradients;
    for (const NamedParameter& parameter : state.model.parameters)  // far from what it begins with
      parameter.value.add_(at::randn_like(parameter.value) * 0.2);
  }
  write_checkpoint(config, state, run.run(), run.folder / "tokenizer");
  const Transformer transformer(std::make_shared<Checkpoint>(Checkpoint::open(run.run() / "latest")), {});
  const at::Tensor ids = at::randint(0, 40, {3 * 11}, at::kLong);
  const TokenBatch batch = testing::batch_of(testing::rows_of(ids.view({3, 11})));
  const at::Tensor right = transformer.forward({.tokens = batch}).logits;
  const at::Tensor hidden = hidden_rows(state.model, ids, 3, ProductPrecision::f32);
  EXPECT_LT((at::matmul(hidden, state.model.head.t()) - right).abs().max().item<double>(), 2e-4);
}

INSTANTIATE_TEST_SUITE_P(Families, TrainableModelTest,
                         ::testing::Values(Case{"llada", "masked-diffusion", nlohmann::json::object()},
                                           Case{"llada_tied", "masked-diffusion", {{"tied_head", true}}},
                                           Case{"llama", "autoregressive", {{"kv_heads", 1}}},
                                           Case{"mistral", "autoregressive", {{"sliding_window", 4}}}),
                         [](const auto& objective) { return std::string(objective.param.name); });

TEST(TrainableModel, GradientsAreThoseOfFiniteDifferences) {
  const SmallRun run;
  TrainConfig config = run.read();
  config.model.embedding_rows = config.model.head_rows = 40;
  config.model.mask_id = 39;
  const TrainableModel model = new_model(config.model, 5, at::kCPU);
  const at::Tensor ids = at::arange(24, at::kLong);
  const PredictedRows predicted{at::arange(24, at::kLong), ids, at::full({24}, 1.0 / 24)};
  const auto loss = [&] {
    return cross_entropy(Backend::cpu, hidden_rows(model, ids, 2, ProductPrecision::f32), model.head,
                         predicted, ProductPrecision::f32)
        .loss;
  };
  loss().backward();
  for (const NamedParameter& parameter : model.parameters) {
    const at::NoGradGuard no_gradients;
    at::manual_seed(1);
    const at::Tensor direction = at::randn_like(parameter.value) * 0.02;  // as large as weights
    const auto slope = (parameter.value.grad() * direction).sum().item<double>();
    constexpr double h = 0.05;
    parameter.value.add_(direction, h);
    const double above = loss().item<double>();
    parameter.value.add_(direction, -2 * h);
    const double below = loss().item<double>();
    parameter.value.add_(direction, h);
    EXPECT_NEAR((above - below) / (2 * h), slope, 1e-4 + 0.02 * std::abs(slope)) << parameter.name;
  }
}

}  // namespace
}  // namespace sinkscope
