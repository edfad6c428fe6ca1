// sinkscope_attention of config.json: what it may say, and every value that is refused.
#include "checkpoint/attention_variant_config.h"

#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// 2 layers of 2 heads of 4.
Json config_with(const Json& attention) {
  Json config = tiny_config_with("architectures", {"SinkscopeLLaDAModel"});
  config["rope"] = !attention.is_object() || !attention.contains("positions");
  config[attention_variant_key] = attention;
  return config;
}

TestTensors tensors_with(const std::string& name, const std::vector<std::int64_t>& shape) {
  TestTensors tensors = tiny_tensors();
  for (int layer = 0; layer < 2; ++layer)
    tensors[fmt::format("model.transformer.blocks.{}.{}", layer, name)] = bf16_zeros(shape);
  return tensors;
}

AttentionVariant variant_of(const Json& attention, const TestTensors& tensors = tiny_tensors()) {
  return config_of(config_with(attention), tensors).attention;
}

TEST(AttentionVariantConfig, EveryKeyIsRead) {
  EXPECT_EQ(variant_of({{"similarity", "sigmoid"}, {"normalised", false}, {"scale", 0.5}}),
            (AttentionVariant{.similarity = Similarity::sigmoid, .normalised = false, .scale = 0.5}));
  EXPECT_EQ(variant_of({{"similarity", "elu-plus-one"}, {"p", 3}}),
            (AttentionVariant{.similarity = Similarity::elu_plus_one, .p = 3}));
  EXPECT_EQ(variant_of({{"slot", "key-bias"},
                        {"slot_shared", true},
                        {"slot_dims", 3},
                        {"slot_value", "uniform"},
                        {"slot_value_norm", 20}},
                       tensors_with("bias_k", {1, 3})),
            (AttentionVariant{.slot = KeySlot::key_bias,
                              .slot_shared = true,
                              .slot_dims = 3,
                              .slot_value = SlotValue::uniform,
                              .slot_value_norm = 20}));
  EXPECT_EQ(variant_of({{"value_bias", true}}, tensors_with("bias_out", {2, 4})),
            (AttentionVariant{.value_bias = true}));
  EXPECT_EQ(variant_of({{"positions", "relative"}}, tensors_with("relative_bias", {2, 32})).positions,
            PositionEncoding::relative);
}

TEST(AttentionVariantConfig, RotationIsOfOrdinaryPositionsOnly) {
  Json config = config_with({{"positions", "none"}});
  config["rope"] = true;
  EXPECT_THAT(error_of([&] { config_of(config); }), HasSubstr("rope is true; only false"));
  config["rope"] = false;
  EXPECT_EQ(config_of(config).attention.positions, PositionEncoding::none);
  config[attention_variant_key] = {{"positions", "alibi"}};
  config["alibi"] = true;
  EXPECT_EQ(config_of(config).attention.positions, PositionEncoding::alibi);
}

TEST(AttentionVariantConfig, NormsBehindTheirPartsLeaveNoneForTheEnd) {
  TestTensors tensors = tiny_tensors();
  EXPECT_THAT(error_of([&] { variant_of({{"post_norm", true}}, tensors); }), HasSubstr("ln_f"));
  tensors.erase("model.transformer.ln_f.weight");
  EXPECT_TRUE(variant_of({{"post_norm", true}}, tensors).post_norm);
}

TEST(AttentionVariantConfig, WhatIsLearntIsNeededInItsShape) {
  const std::string missing = error_of([] { variant_of({{"slot", "key-value-bias"}}); });
  EXPECT_THAT(missing, AllOf(HasSubstr("lacks 4 tensors"), HasSubstr("blocks.0.bias_k")));
  EXPECT_THAT(error_of([] {
                variant_of({{"slot", "key-bias"}}, tensors_with("bias_k", {1, 4}));
              }),
              HasSubstr("bias_k"));
  EXPECT_THAT(error_of([] {
                variant_of({{"scale", 2}}, tensors_with("bias_k", {2, 4}));
              }),
              HasSubstr("bias_k"));
}

TEST(AttentionVariantConfig, OrdinaryClassesHaveNone) {
  EXPECT_THAT(error_of([] {
                config_of(tiny_config_with(attention_variant_key, {{"scale", 2}}));
              }),
              HasSubstr("LLaDAModelLM is a class that has no variants of attention"));
  EXPECT_THAT(error_of([] { variant_of(Json::object()); }), HasSubstr("changes nothing"));
}

TEST(AttentionVariantConfig, WhatIsWrittenIsReadAgain) {
  const AttentionVariant variants[] = {
      {},
      {.similarity = Similarity::mlp_kernel, .normalised = false, .scale = 0.25, .value_bias = true},
      {.p = 2,
       .slot = KeySlot::sink_token,
       .positions = PositionEncoding::relative_bucket,
       .post_norm = true},
      {.slot = KeySlot::key_bias,
       .slot_shared = true,
       .slot_dims = 2,
       .slot_value = SlotValue::first,
       .slot_value_norm = 1.5,
       .positions = PositionEncoding::learned,
       .prefix = 7}};
  ModelConfig model;
  model.head_dim = 4;
  model.generation = Generation::autoregressive;
  for (const AttentionVariant& variant : variants) {
    const Json json = attention_variant_json(variant);
    EXPECT_EQ(read_attention_variant({json, "here"}, model), variant) << json;
  }
  EXPECT_EQ(attention_variant_json({}).size(), 0U);
}

struct WrongVariant {
  Json attention;
  const char* message;
};
class WrongAttentionVariant : public ::testing::TestWithParam<WrongVariant> {};
TEST_P(WrongAttentionVariant, IsNamedWithWhatWouldBeRight) {
  EXPECT_THAT(error_of([] { variant_of(GetParam().attention); }),
              AllOf(HasSubstr("config.json sinkscope_attention"), HasSubstr(GetParam().message)));
}
INSTANTIATE_TEST_SUITE_P(
    Values, WrongAttentionVariant,
    ::testing::Values(
        WrongVariant{"sigmoid", "should be an object, not a string"},
        WrongVariant{{{"similarities", 1}},
                     "there is no key similarities; there are similarity, normalised, p"},
        WrongVariant{{{"similarity", "cosine"}}, "should be one of softmax, sigmoid, elu-plus-one"},
        WrongVariant{{{"similarity", 1}}, "similarity is 1"},
        WrongVariant{{{"normalised", "yes"}}, "normalised is \"yes\""},
        WrongVariant{{{"normalised", false}}, "normalised should be true for softmax"},
        WrongVariant{{{"p", 0}}, "p is 0"},
        WrongVariant{{{"similarity", "linear-kernel"}, {"p", 2}}, "p is for normalised similarities"},
        WrongVariant{{{"similarity", "sigmoid"}, {"normalised", false}, {"p", 2}}, "p is for normalised"},
        WrongVariant{{{"scale", -1}}, "scale is -1"},
        WrongVariant{{{"slot", "bias"}}, "should be one of none, sink-token, key-value-bias, key-bias"},
        WrongVariant{{{"similarity", "sigmoid"}, {"slot", "sink-token"}}, "sink-token is for softmax"},
        WrongVariant{{{"slot", "sink-token"}, {"slot_shared", true}}, "slot_shared is for"},
        WrongVariant{{{"slot", "key-value-bias"}, {"slot_dims", 2}}, "slot_dims is for the slot key-bias"},
        WrongVariant{{{"slot", "key-bias"}, {"slot_dims", 5}},
                     "slot_dims is 5; it should be an integer from 0 to 4"},
        WrongVariant{{{"slot", "key-value-bias"}, {"slot_value", "first"}, {"slot_value_norm", 1}},
                     "slot_value is for the slot key-bias"},
        WrongVariant{{{"slot", "key-bias"}, {"slot_value", "first"}}, "slot_value_norm is the norm"},
        WrongVariant{{{"slot", "key-bias"}, {"slot_value_norm", 1}}, "slot_value_norm is the norm"},
        WrongVariant{{{"positions", "rotary"}}, "should be one of rope, none, learned, sinusoid"},
        WrongVariant{{{"similarity", "elu-kernel"}, {"positions", "alibi"}}, "positions alibi, relative and"},
        WrongVariant{{{"prefix", 3}}, "prefix is for autoregressive models"},
        WrongVariant{{{"prefix", -1}}, "prefix is -1"}, WrongVariant{{{"post_norm", 1}}, "post_norm is 1"}));

}  // namespace
}  // namespace sinkscope
