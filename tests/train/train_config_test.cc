#include "train/train_config.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "train/small_run.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::string error_of(const SmallRun& run) {
  try {
    run.read();
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error)";
}

TEST(TrainConfig, DefaultsAreFilledInAndPathsAreBesideTheFile) {
  const SmallRun run;
  const TrainConfig config = run.read();
  EXPECT_EQ(config.model.head_dim, 8);
  EXPECT_EQ(config.model.kv_heads, 2);
  EXPECT_EQ(config.model.max_positions, 32);
  EXPECT_EQ(config.data.files.front(), run.folder / "train.jsonl");
  EXPECT_EQ(config.tokenizer, run.folder / "tokenizer");
  EXPECT_DOUBLE_EQ(config.optimizer.final_learning_rate, 0.001);
  EXPECT_FALSE(config.bfloat16);
}

TEST(TrainConfig, AnAutoregressiveModelIsALlamaAndWithAWindowAMistral) {
  SmallRun run;
  run.config["objective"] = "autoregressive";
  EXPECT_EQ(run.read().model.architecture, "LlamaForCausalLM");
  run.config["model"]["sliding_window"] = 4;
  EXPECT_EQ(run.read().model.architecture, "MistralForCausalLM");
}

TEST(TrainConfig, AVariantOfAttentionIsAClassOfItsOwn) {
  SmallRun run;
  run.config["model"]["attention"] = {{"slot", "sink-token"}, {"positions", "learned"}};
  const TrainConfig masked = run.read();
  EXPECT_EQ(masked.model.architecture, "SinkscopeLLaDAModel");
  EXPECT_EQ(masked.model.attention.slot, KeySlot::sink_token);
  EXPECT_EQ(masked.model.max_positions, 33);  // the token's own, in front of a context of 32
  run.config["objective"] = "autoregressive";
  run.config["model"]["sliding_window"] = 4;
  EXPECT_EQ(run.read().model.architecture, "SinkscopeLlamaForCausalLM");
  EXPECT_NE(run.read().fingerprint, masked.fingerprint);
  run.config["model"]["attention"] = nlohmann::json::object();
  EXPECT_EQ(run.read().model.architecture, "MistralForCausalLM");
}

TEST(TrainConfig, APrefixLmHasAPrefixBelowItsContext) {
  SmallRun run;
  run.config["objective"] = "prefix-lm";
  EXPECT_THAT(error_of(run), HasSubstr("prefix is missing; for the objective prefix-lm it should be"));
  run.config["prefix"] = 3;
  EXPECT_EQ(run.read().model.attention.prefix, 3);
  EXPECT_TRUE(run.read().model.causal());
  EXPECT_EQ(run.read().model.architecture, "SinkscopeLlamaForCausalLM");
  run.config["prefix"] = 32;
  EXPECT_THAT(error_of(run), HasSubstr("prefix 32 should be less than context 32"));
}

struct WrongKey {
  const char* place;  // JSON pointer
  nlohmann::json value;
  const char* message;
};
class Wrong : public ::testing::TestWithParam<WrongKey> {};
TEST_P(Wrong, IsNamedWithWhatWouldBeRight) {
  SmallRun run;
  run.config[nlohmann::json::json_pointer(GetParam().place)] = GetParam().value;
  EXPECT_THAT(error_of(run), AllOf(HasSubstr("config.json"), HasSubstr(GetParam().message)));
}
INSTANTIATE_TEST_SUITE_P(
    Keys, Wrong,
    ::testing::Values(
        WrongKey{"/learning_rate", 1, "there is no key learning_rate; there are accumulate, batch, "},
        WrongKey{"/model/layer", 1, "there is no key layer"},
        WrongKey{"/objective", "denoising", "should be one of masked-diffusion, autoregressive"},
        WrongKey{"/model/heads", 3, "width 16 should be an even number of columns for each of 3 heads"},
        WrongKey{"/model/kv_heads", 3, "kv_heads is 3"},
        WrongKey{"/model/sliding_window", 4, "for autoregressive models"},
        WrongKey{"/data/files", "train.jsonl", "files should be a list"},
        WrongKey{"/data/files", nlohmann::json::array(), "at least one file"},
        WrongKey{"/batch", 0, "batch is 0"}, WrongKey{"/batch", -1, "batch is -1"},
        WrongKey{"/steps", nullptr, "the key steps is missing"},
        WrongKey{"/optimizer/learning_rate", "1e-3", "learning_rate is"},
        WrongKey{"/optimizer/beta2", 1, "beta2 is 1"},
        WrongKey{"/precision", "fp8", "should be one of f32, bf16"},
        WrongKey{"/prefix", 3, "prefix is for the objective prefix-lm"},
        WrongKey{"/model/attention", 3, "attention is an integer; it should be an object"},
        WrongKey{"/model/attention/slots", "sink-token", "model attention: there is no key slots"},
        WrongKey{"/model/attention/prefix", 3, "the objective prefix-lm has it, beside `objective`"},
        WrongKey{"/model/attention/similarity", "cosine", "should be one of softmax, sigmoid"},
        WrongKey{"/model/attention/slot_dims", 3, "slot_dims is for the slot key-bias"},
        WrongKey{"/model/attention/p", 1e-6, "p is 1e-06; it should be from 0.25 to 64"},
        WrongKey{"/seed", -1, "an integer from 0 to"}, WrongKey{"/data/fill", 0.5, "an integer from 0 to"},
        WrongKey{"/optimizer/weight_decay", -1, "weight_decay is -1; it should be a number from 0 to 100"},
        WrongKey{"/probe/positions", 1, "positions is 1; it should be from 2 to the context, 32"},
        WrongKey{"/probe/positions", 33, "positions is 33; it should be from 2 to the context, 32"},
        WrongKey{"/tokenizer", nullptr, "tokenizer is missing"}));

TEST(TrainConfig, TheProbeIsWithinTheContext) {
  SmallRun run;
  run.config["probe"] = {{"every", 6}};
  EXPECT_EQ(run.read().probe.positions, 32);
  run.config["context"] = 256;
  EXPECT_EQ(run.read().probe.positions, 64);
}

TEST(TrainConfig, AnswersAndFillAreOfRows) {
  for (const nlohmann::json& key : {nlohmann::json{{"answer_only", true}}, nlohmann::json{{"fill", 4}}}) {
    SmallRun run;
    run.config["data"]["layout"] = "joined";
    run.config["data"].update(key);
    EXPECT_THAT([&] { run.read(); }, ThrowsMessage<Error>(HasSubstr("is for the layout rows")));
  }
}

TEST(TrainConfig, FillIsForMaskedDiffusion) {
  SmallRun run;
  run.config["data"]["fill"] = 4;
  EXPECT_EQ(run.read().data.fill, 4);
  run.config["objective"] = "autoregressive";
  EXPECT_THAT(error_of(run), HasSubstr("fill is for the objective masked-diffusion"));
}

TEST(TrainConfig, TheFingerprintFollowsWhatDecidesTheWeights) {
  SmallRun run;
  const std::string before = run.read().fingerprint;
  run.config["log_every"] = 1;
  EXPECT_EQ(run.read().fingerprint, before);
  run.config["seed"] = 2;
  EXPECT_NE(run.read().fingerprint, before);
}

TEST(TrainConfig, TheLearningRateGrowsAndFallsAlongAHalfCosine) {
  SmallRun run;
  run.config["steps"] = 13;
  const TrainConfig config = run.read();
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 1), 0.01 / 3);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 3), 0.01);
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 8), (0.01 + 0.001) / 2);  // half way from 3 to 13
  EXPECT_DOUBLE_EQ(learning_rate_at(config, 13), 0.001);
}

}  // namespace
}  // namespace sinkscope
