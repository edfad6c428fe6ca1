#include "train/probe.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "train/small_run.h"

namespace sinkscope {
namespace {

// Uniform attention: no query and key says anything.
TrainableModel model_without_preferences(const char* objective,
                                         const nlohmann::json& attention = nlohmann::json::object()) {
  SmallRun run;
  run.config["objective"] = objective;
  run.config["model"]["attention"] = attention;
  TrainConfig config = run.read();
  config.model.embedding_rows = config.model.head_rows = 40;
  config.model.mask_id = 39;
  TrainableModel model = new_model(config.model, 1, at::kCPU);
  const at::NoGradGuard no_gradients;
  for (const TrainableBlock& block : model.blocks) block.query.zero_();
  return model;
}

ProbeTexts texts_of(std::int64_t rows, std::int64_t length) {
  ProbeTexts texts{rows, length, {}};
  for (std::int64_t i = 0; i < rows * length; ++i) texts.ids.push_back(static_cast<std::int32_t>(i % 39));
  return texts;
}

// Row i of a causal map is 1 / (i + 1): alpha_0 = H_T / T, 0.3397 for 8 positions and 0.0741 for 64.
TEST(Probe, UniformCausalAttentionIsHarmonic) {
  const TrainableModel model = model_without_preferences("autoregressive");
  const auto eight = probe_sinks(model, texts_of(2, 8), -1, 1);
  EXPECT_NEAR(eight["alpha_first"], 0.339732, 1e-5);
  EXPECT_EQ(eight["sink_rate"], 1);
  const auto more = probe_sinks(model, texts_of(2, 64), -1, 1);
  EXPECT_NEAR(more["alpha_first"], 0.074123, 1e-5);
  EXPECT_EQ(more["sink_rate"], 0);
  EXPECT_EQ(more["massive_ratio"].size(), 2U);
}

TEST(Probe, EachOfTheFirstPositionsHasARate) {
  const TrainableModel model = model_without_preferences("autoregressive");
  EXPECT_EQ(probe_sinks(model, texts_of(2, 8), -1, 1)["sink_rates"],
            std::vector<double>({1, 0, 0, 0, 0, 0, 0, 0}));
  // alpha_k = (H_T - H_k) / (T - k): 0.52, 0.36, 0.29 and 0.25 for 4 positions
  EXPECT_EQ(probe_sinks(model, texts_of(2, 4), -1, 1)["sink_rates"], std::vector<double>({1, 1, 0, 0}));
  EXPECT_EQ(probe_sinks(model, texts_of(2, 64), -1, 1)["sink_rates"], std::vector<double>(10, 0.0));
  EXPECT_FALSE(probe_sinks(model, texts_of(2, 8), -1, 1).contains("slot_rate"));
}

// A slot's key of zero takes 1 / (i + 1) of causal row i: (H_(T+1) - 1) / T on average.
TEST(Probe, ASlotTakesWhatRowsLack) {
  for (const char* slot : {"key-bias", "key-value-bias"}) {
    const TrainableModel model = model_without_preferences("autoregressive", {{"slot", slot}});
    const auto eight = probe_sinks(model, texts_of(2, 8), -1, 1);
    EXPECT_NEAR(eight["alpha_slot"], 0.228621, 1e-5);
    EXPECT_EQ(eight["slot_rate"], 0);
    EXPECT_NEAR(eight["alpha_first"], 0.228621, 1e-5);  // as much as each key that all see
    const auto four = probe_sinks(model, texts_of(2, 4), -1, 1);
    EXPECT_NEAR(four["alpha_slot"], 0.320833, 1e-5);
    EXPECT_EQ(four["slot_rate"], 1);
  }
  const TrainableModel masked = model_without_preferences("masked-diffusion", {{"slot", "sink-token"}});
  EXPECT_NEAR(probe_sinks(masked, texts_of(3, 15), 39, 1)["alpha_slot"], 1.0 / 16, 1e-5);
}

// Half of every key, whatever the row; as attention of sum 1 that is uniform.
TEST(Probe, RowsThatAreNotOfSumOneAreScaledToIt) {
  const TrainableModel model =
      model_without_preferences("autoregressive", {{"similarity", "sigmoid"}, {"normalised", false}});
  EXPECT_NEAR(probe_sinks(model, texts_of(2, 8), -1, 1)["alpha_first"], 0.339732, 1e-5);
}

TEST(Probe, UniformBidirectionalAttentionHasNoSinks) {
  const auto seen = probe_sinks(model_without_preferences("masked-diffusion"), texts_of(3, 16), 39, 1);
  EXPECT_NEAR(seen["alpha_first"], 1.0 / 16, 1e-6);
  EXPECT_NEAR(seen["largest_column"], 1, 1e-4);
  EXPECT_EQ(seen["sink_share"], 0);
  EXPECT_EQ(seen["sink_rate"], 0);
}

TEST(Probe, AKeyThatDrawsAllIsASink) {
  TrainableModel model = model_without_preferences("masked-diffusion");
  const at::NoGradGuard no_gradients;
  // Queries point along the first coordinate of every head whatever the token (a constant in the stream), and
  // the mask's key lies there too.
  model.embedding.fill_(0.01);
  model.embedding.select(1, 0).fill_(1);
  model.embedding[39].fill_(0.01);
  model.embedding[39][1] = 1;
  for (const TrainableBlock& block : model.blocks) {
    block.query.zero_();
    block.key.zero_();
    block.attention_out.zero_();
    block.down.zero_();
    block.query.select(1, 0).fill_(5);
    block.query.select(1, 1).fill_(5);
    block.key.select(1, 1).fill_(5);
  }
  ProbeTexts texts = texts_of(2, 64);
  const auto seen = probe_sinks(model, texts, 39, 1);
  EXPECT_EQ(seen["masked_sinks"], 1);
  EXPECT_GT(seen["sink_share"], 0);
}

}  // namespace
}  // namespace sinkscope
