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
  std::string name;
  std::string objective;
  nlohmann::json model;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

struct CaseRun : SmallRun {
  explicit CaseRun(const Case& c) {
    config["objective"] = c.objective;
    if (c.objective == "prefix-lm") config["prefix"] = 5;
    config["model"].update(c.model);
  }
};

TrainConfig config_of(const SmallRun& run, const Case& c) {
  TrainConfig config = run.read();
  config.model.embedding_rows = config.model.head_rows = 40;
  if (c.objective == "masked-diffusion") config.model.mask_id = 39;
  config.model.bos_id = 37;
  config.model.pad_id = 38;
  config.model.eos_ids = {38};
  return config;
}

void move_parameters(const TrainableModel& model, double deviation) {
  const at::NoGradGuard no_gradients;
  at::manual_seed(3);
  for (const NamedParameter& parameter : model.parameters)
    parameter.value.add_(at::randn_like(parameter.value) * deviation);
}

class TrainableModelTest : public ::testing::TestWithParam<Case> {};

TEST_P(TrainableModelTest, ItsCheckpointGivesTheSameLogits) {
  const CaseRun run(GetParam());
  const TrainConfig config = config_of(run, GetParam());
  TrainingState state = new_state(config, at::kCPU);
  move_parameters(state.model, 0.2);  // far from what it begins with
  write_checkpoint(config, state, run.run(), run.folder / "tokenizer");
  const Transformer transformer(std::make_shared<Checkpoint>(Checkpoint::open(run.run() / "latest")), {});
  EXPECT_EQ(transformer.config().attention, config.model.attention);
  const at::Tensor ids = at::randint(0, 40, {3 * 11}, at::kLong);
  const TokenBatch batch = testing::batch_of(testing::rows_of(ids.view({3, 11})));
  const at::Tensor right = transformer.forward({.tokens = batch}).logits;
  const at::Tensor hidden = hidden_rows(state.model, ids, 3, ProductPrecision::f32);
  EXPECT_LT((at::matmul(hidden, state.model.head.t()) - right).abs().max().item<double>(), 2e-4);
}

nlohmann::json with_attention(const nlohmann::json& attention) { return {{"attention", attention}}; }

INSTANTIATE_TEST_SUITE_P(Families, TrainableModelTest,
                         ::testing::Values(Case{"llada", "masked-diffusion", nlohmann::json::object()},
                                           Case{"llada_tied", "masked-diffusion", {{"tied_head", true}}},
                                           Case{"llama", "autoregressive", {{"kv_heads", 1}}},
                                           Case{"mistral", "autoregressive", {{"sliding_window", 4}}}),
                         [](const auto& objective) { return std::string(objective.param.name); });

// A model of either family for each name.
std::vector<Case> variants() {
  const std::pair<const char*, nlohmann::json> attentions[] = {
      {"sigmoid", {{"similarity", "sigmoid"}}},
      {"sigmoid_unnormalised", {{"similarity", "sigmoid"}, {"normalised", false}}},
      {"elu_plus_one", {{"similarity", "elu-plus-one"}, {"p", 2}}},
      {"elu_kernel", {{"similarity", "elu-kernel"}}},
      {"linear_kernel", {{"similarity", "linear-kernel"}}},
      {"mlp_kernel", {{"similarity", "mlp-kernel"}}},
      {"scaled", {{"scale", 0.5}, {"p", 2}}},
      {"sink_token", {{"slot", "sink-token"}}},
      {"sink_token_scaled", {{"slot", "sink-token"}, {"scale", 2}, {"value_bias", true}}},
      {"sink_token_post_learned", {{"slot", "sink-token"}, {"post_norm", true}, {"positions", "learned"}}},
      {"sink_token_alibi", {{"slot", "sink-token"}, {"positions", "alibi"}}},
      {"sink_token_sinusoid", {{"slot", "sink-token"}, {"positions", "sinusoid"}}},
      {"key_value_bias", {{"slot", "key-value-bias"}}},
      {"key_value_bias_shared", {{"slot", "key-value-bias"}, {"slot_shared", true}}},
      {"key_bias_few", {{"slot", "key-bias"}, {"slot_dims", 3}}},
      {"key_bias_first", {{"slot", "key-bias"}, {"slot_value", "first"}, {"slot_value_norm", 5}}},
      {"key_bias_uniform",
       {{"slot", "key-bias"}, {"slot_shared", true}, {"slot_value", "uniform"}, {"slot_value_norm", 1}}},
      {"value_bias", {{"value_bias", true}}},
      {"no_positions", {{"positions", "none"}}},
      {"learned", {{"positions", "learned"}}},
      {"sinusoid", {{"positions", "sinusoid"}}},
      {"alibi", {{"positions", "alibi"}}},
      {"relative", {{"positions", "relative"}}},
      {"relative_bucket", {{"positions", "relative-bucket"}}},
      {"post_norm", {{"post_norm", true}}},
      {"post_norm_sigmoid", {{"post_norm", true}, {"similarity", "sigmoid"}, {"positions", "relative"}}}};
  std::vector<Case> cases;
  for (const auto& [name, attention] : attentions) {
    cases.push_back({std::string("llada_") + name, "masked-diffusion", with_attention(attention)});
    cases.push_back({std::string("llama_") + name, "autoregressive", with_attention(attention)});
  }
  const nlohmann::json slot{{"slot", "key-value-bias"}}, sink{{"slot", "sink-token"}};
  cases.push_back({"llama_window_slot", "autoregressive", {{"sliding_window", 4}, {"attention", slot}}});
  cases.push_back({"llama_window_sink", "autoregressive", {{"sliding_window", 4}, {"attention", sink}}});
  cases.push_back({"llama_one_kv_head_slot", "autoregressive", {{"kv_heads", 1}, {"attention", slot}}});
  cases.push_back({"llama_one_kv_head_sink", "autoregressive", {{"kv_heads", 1}, {"attention", sink}}});
  cases.push_back({"prefix", "prefix-lm", nlohmann::json::object()});
  cases.push_back({"prefix_window", "prefix-lm", {{"sliding_window", 3}, {"kv_heads", 1}}});
  cases.push_back({"prefix_slot", "prefix-lm", {{"sliding_window", 3}, {"attention", slot}}});
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Variants, TrainableModelTest, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return variant.param.name; });

class TrainableModelGradient : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Variants, TrainableModelGradient,
    ::testing::Values(
        Case{"llada", "masked-diffusion", nlohmann::json::object()},
        Case{"sink_token", "masked-diffusion", with_attention({{"slot", "sink-token"}})},
        Case{"sink_token_post",
             "autoregressive",
             {{"kv_heads", 1}, {"attention", {{"slot", "sink-token"}, {"post_norm", true}}}}},
        Case{"key_value_bias", "masked-diffusion", with_attention({{"slot", "key-value-bias"}})},
        Case{"key_bias_few", "autoregressive", with_attention({{"slot", "key-bias"}, {"slot_dims", 3}})},
        Case{"learned", "masked-diffusion", with_attention({{"positions", "learned"}})},
        Case{"mlp_kernel", "autoregressive", with_attention({{"similarity", "mlp-kernel"}})},
        Case{"relative", "autoregressive", with_attention({{"positions", "relative"}})},
        Case{"value_bias", "masked-diffusion", with_attention({{"value_bias", true}})},
        Case{"post_norm", "masked-diffusion", with_attention({{"post_norm", true}})},
        Case{"prefix", "prefix-lm", nlohmann::json::object()}),
    [](const auto& c) { return c.param.name; });

TEST_P(TrainableModelGradient, IsThatOfFiniteDifferences) {
  const CaseRun run(GetParam());
  const TrainableModel model = new_model(config_of(run, GetParam()).model, 5, at::kCPU);
  move_parameters(model, 0.02);  // slots and biases begin at zero
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
