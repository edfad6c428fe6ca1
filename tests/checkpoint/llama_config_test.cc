// The families with Llama's key and tensor names.
#include <gmock/gmock.h>

#include "checkpoint/checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Width 8, 2 heads of 4, 1 key/value head, MLP 16, 12 ids, 2 layers.
Json small_config(const std::string& architecture) {
  return {{"architectures", {architecture}},
          {"hidden_size", 8},
          {"num_hidden_layers", 2},
          {"num_attention_heads", 2},
          {"num_key_value_heads", 1},
          {"intermediate_size", 16},
          {"vocab_size", 12},
          {"hidden_act", "silu"},
          {"rope_theta", 10000.0},
          {"rms_norm_eps", 1e-5},
          {"max_position_embeddings", 64}};
}

struct Parts {
  bool qkv_bias = false;
  bool output_bias = false;
  bool qk_norm = false;
  std::int64_t head_dim = 4;
  int experts = 0;
};

TestTensors small_tensors(const Parts& parts = {}) {
  TestTensors tensors = {{"model.embed_tokens.weight", bf16_zeros({12, 8})},
                         {"model.norm.weight", bf16_zeros({8})},
                         {"lm_head.weight", bf16_zeros({12, 8})}};
  const std::int64_t query = 2 * parts.head_dim, key = parts.head_dim;
  for (int layer = 0; layer < 2; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer), attention = block + "self_attn.";
    tensors[block + "input_layernorm.weight"] = bf16_zeros({8});
    tensors[block + "post_attention_layernorm.weight"] = bf16_zeros({8});
    for (const auto& [name, out] : {std::pair{"q_proj", query}, {"k_proj", key}, {"v_proj", key}}) {
      tensors[attention + name + ".weight"] = bf16_zeros({out, 8});
      if (parts.qkv_bias) tensors[attention + name + ".bias"] = bf16_zeros({out});
    }
    tensors[attention + "o_proj.weight"] = bf16_zeros({8, query});
    if (parts.output_bias) tensors[attention + "o_proj.bias"] = bf16_zeros({8});
    if (parts.qk_norm)
      for (const char* name : {"q_norm.weight", "k_norm.weight"})
        tensors[attention + name] = bf16_zeros({parts.head_dim});
    if (parts.experts > 0) tensors[block + "mlp.gate.weight"] = bf16_zeros({parts.experts, 8});
    for (int expert = 0; expert < std::max(1, parts.experts); ++expert) {
      const std::string mlp =
          parts.experts > 0 ? fmt::format("{}mlp.experts.{}.", block, expert) : block + "mlp.";
      tensors[mlp + "gate_proj.weight"] = bf16_zeros({16, 8});
      tensors[mlp + "up_proj.weight"] = bf16_zeros({16, 8});
      tensors[mlp + "down_proj.weight"] = bf16_zeros({8, 16});
    }
  }
  return tensors;
}

std::string error_with(Json config, const std::string& key, const Json& value, const Parts& parts = {}) {
  config[key] = value;
  return error_of([&] { config_of(config, small_tensors(parts)); });
}

TEST(LlamaConfig, DescribesTheModel) {
  Json json = small_config("LlamaForCausalLM");
  json["eos_token_id"] = {2, 3};
  const ModelConfig config = config_of(json, small_tensors());
  EXPECT_EQ(config.family, Family::llama);
  EXPECT_TRUE(config.causal());
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_TRUE(config.rope_in_storage);
  EXPECT_THAT(config.eos_ids, ElementsAre(2, 3));
  EXPECT_FALSE(config.llama3_scaling);
}

TEST(LlamaConfig, ItsBiasKeyCountsForAllOfAttention) {
  Json json = small_config("LlamaForCausalLM");
  json["attention_bias"] = true;
  const ModelConfig config = config_of(json, small_tensors({.qkv_bias = true, .output_bias = true}));
  EXPECT_TRUE(config.qkv_bias && config.output_bias);
  EXPECT_THAT(error_of([&] { config_of(json, small_tensors({.qkv_bias = true})); }),
              HasSubstr("lacks 2 tensors: model.layers.0.self_attn.o_proj.bias"));
  json["attention_bias"] = false;
  EXPECT_THAT(error_of([&] { config_of(json, small_tensors({.qkv_bias = true})); }),
              HasSubstr("a sign of biases"));
}

TEST(LlamaConfig, StoredFrequenciesOfOldFilesAreNoMatter) {
  TestTensors tensors = small_tensors();
  tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = bf16_zeros({2});
  EXPECT_EQ(config_of(small_config("LlamaForCausalLM"), tensors).layers, 2);
}

TEST(LlamaConfig, TiedHeadsMayBeStoredOrNot) {
  for (const bool tied : {true, false})
    for (const bool stored : {true, false}) {
      Json json = small_config("LlamaForCausalLM");
      json["tie_word_embeddings"] = tied;
      TestTensors tensors = small_tensors();
      if (!stored) tensors.erase("lm_head.weight");
      const std::string error = error_of([&] { EXPECT_EQ(config_of(json, tensors).tied_head, tied); });
      if (!tied && !stored)
        EXPECT_THAT(error, HasSubstr("lacks the output matrix lm_head.weight"));
      else
        EXPECT_EQ(error, "(no Error)");
    }
}

TEST(RopeConfig, ReadsLlama3ScalingInOldAndNewFiles) {
  const Json scaling = {{"rope_type", "llama3"},
                        {"factor", 8.0},
                        {"low_freq_factor", 1.0},
                        {"high_freq_factor", 4.0},
                        {"original_max_position_embeddings", 8192}};
  Json old_file = small_config("LlamaForCausalLM");
  old_file["rope_scaling"] = scaling;
  Json new_file = small_config("LlamaForCausalLM");
  new_file.erase("rope_theta");
  new_file["rope_parameters"] = scaling;
  new_file["rope_parameters"]["rope_theta"] = 10000.0;
  for (const Json& json : {old_file, new_file}) {
    const ModelConfig config = config_of(json, small_tensors());
    EXPECT_EQ(config.rope_theta, 10000);
    ASSERT_TRUE(config.llama3_scaling);
    EXPECT_EQ(*config.llama3_scaling, (Llama3Scaling{8, 1, 4, 8192}));
  }
}

TEST(RopeConfig, OtherScalingsAreRefusedByName) {
  const Json config = small_config("LlamaForCausalLM");
  EXPECT_THAT(error_with(config, "rope_scaling", {{"type", "yarn"}, {"factor", 4.0}}),
              HasSubstr("the scaling \"yarn\" is not supported; llama3, linear and default are"));
  EXPECT_THAT(error_with(config, "rope_scaling", {{"rope_type", "llama3"}}), HasSubstr("factor is missing"));
  EXPECT_THAT(error_with(config, "rope_scaling", 7), HasSubstr("rope_scaling is 7; it should be an object"));
  EXPECT_THAT(error_with(config, "partial_rotary_factor", 0.5), HasSubstr("partial_rotary_factor is 0.5"));
  Json linear = config;
  linear["rope_scaling"] = {{"type", "linear"}, {"factor", 4.0}};
  EXPECT_EQ(config_of(linear, small_tensors()).rope_factor, 4);
}

TEST(MistralConfig, HasAWindowWhereOneIsSet) {
  Json json = small_config("MistralForCausalLM");
  json["sliding_window"] = 5;
  EXPECT_EQ(config_of(json, small_tensors()).window_of(0), 5);
  json["sliding_window"] = nullptr;
  EXPECT_EQ(config_of(json, small_tensors()).window_of(1), 0);
  EXPECT_THAT(error_with(json, "sliding_window", 0), HasSubstr("sliding_window is 0"));
}

TEST(Qwen2Config, HasBiasesAndAWindowFromALayerOn) {
  Json json = small_config("Qwen2ForCausalLM");
  json["sliding_window"] = 5;
  json["use_sliding_window"] = true;
  json["max_window_layers"] = 1;
  const Parts biased{.qkv_bias = true};
  const ModelConfig config = config_of(json, small_tensors(biased));
  EXPECT_EQ(config.window_of(0), 0);
  EXPECT_EQ(config.window_of(1), 5);
  json["use_sliding_window"] = false;
  EXPECT_EQ(config_of(json, small_tensors(biased)).window_of(1), 0);
  EXPECT_THAT(error_with(json, "layer_types", {"full_attention"}, biased), HasSubstr("a list of 2 names"));
  EXPECT_THAT(error_with(json, "layer_types", {"full_attention", "sliding_attention"}, biased),
              HasSubstr("\"sliding_attention\" for layer 1"));
  EXPECT_THAT(error_of([&] { config_of(json, small_tensors()); }), HasSubstr("q_proj.bias"));
}

TEST(Qwen3Config, StatesItsHeadsWidthAndNormsThem) {
  Json json = small_config("Qwen3ForCausalLM");
  json["head_dim"] = 6;
  const ModelConfig config = config_of(json, small_tensors({.qk_norm = true, .head_dim = 6}));
  EXPECT_EQ(config.head_dim, 6);
  EXPECT_TRUE(config.qk_norm);
  EXPECT_FALSE(config.qkv_bias);
  EXPECT_THAT(error_with(json, "head_dim", 5, {.qk_norm = true, .head_dim = 5}),
              HasSubstr("RoPE needs an even one"));
}

TEST(DreamConfig, IsBidirectionalAndPredictsTheNextPosition) {
  Json json = small_config("DreamModel");
  json["mask_token_id"] = 11;
  const ModelConfig config = config_of(json, small_tensors({.qkv_bias = true}));
  EXPECT_FALSE(config.causal());
  EXPECT_EQ(config.generation, Generation::shifted_masked);
  EXPECT_EQ(config.mask_id, 11);
}

Json moe_config() {
  Json json = small_config("LLaDAMoEModel");
  json.erase("intermediate_size");
  json["model_type"] = "llada";  // as the released files say
  json["num_experts"] = 3;
  json["num_experts_per_tok"] = 2;
  json["expert_intermediate_size"] = 16;
  return json;
}

TEST(LladaMoeConfig, DescribesTheExperts) {
  const ModelConfig config = config_of(moe_config(), small_tensors({.qk_norm = true, .experts = 3}));
  EXPECT_EQ(config.family, Family::llada_moe);
  EXPECT_EQ(config.generation, Generation::masked);
  ASSERT_TRUE(config.experts);
  EXPECT_EQ(config.experts->count, 3);
  EXPECT_EQ(config.experts->chosen, 2);
  EXPECT_FALSE(config.experts->normalised);
  EXPECT_EQ(config.mlp_width, 16);
}

TEST(LladaMoeConfig, IsKnownByItsModelTypeAndKeys) {
  Json json = moe_config();
  json.erase("architectures");
  EXPECT_EQ(config_of(json, small_tensors({.qk_norm = true, .experts = 3})).family, Family::llada_moe);
}

TEST(LladaMoeConfig, NumbersThatCannotBeAreNamed) {
  const Parts parts{.qk_norm = true, .experts = 3};
  EXPECT_THAT(error_with(moe_config(), "num_experts_per_tok", 4, parts),
              HasSubstr("more than num_experts, 3"));
  EXPECT_THAT(error_with(moe_config(), "num_experts", 4000, parts), HasSubstr("too few for 4000 experts"));
  EXPECT_THAT(error_with(moe_config(), "moe_layer_freq", {0, 1}, parts), HasSubstr("moe_layer_freq holds 0"));
  EXPECT_THAT(error_with(moe_config(), "num_shared_experts", 1, parts), HasSubstr("num_shared_experts is 1"));
  EXPECT_THAT(error_with(moe_config(), "scoring_func", "sigmoid", parts), HasSubstr("scoring_func is"));
  EXPECT_THAT(error_with(moe_config(), "topk_group", 4, parts), HasSubstr("topk_group is 4"));
  EXPECT_THAT(error_with(moe_config(), "routed_scaling_factor", 2.5, parts),
              HasSubstr("routed_scaling_factor is 2.5"));
}

TEST(LlamaConfig, WhatIsNotSupportedIsRefusedByName) {
  const Json config = small_config("LlamaForCausalLM");
  EXPECT_THAT(error_with(config, "hidden_act", "gelu"),
              AllOf(HasSubstr("hidden_act"), HasSubstr("\"silu\"")));
  EXPECT_THAT(error_with(config, "mlp_bias", true), HasSubstr("mlp_bias is true"));
  EXPECT_THAT(error_with(config, "num_key_value_heads", 3), HasSubstr("a multiple of num_key_value_heads"));
  EXPECT_THAT(error_with(config, "quantization_config", {{"bits", 4}}), HasSubstr("quantization_config"));
  EXPECT_THAT(error_with(config, "sliding_window", 8), HasSubstr("sliding_window is 8"));
  EXPECT_THAT(error_with(config, "num_hidden_layers", 1), HasSubstr("config.json does not account for"));
}

}  // namespace
}  // namespace sinkscope
