// config.json: what is taken from it, and every value that is refused.
#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string error_with(const std::string& key, const Json& value) {
  return error_of([&] { config_of(tiny_config_with(key, value)); });
}

std::string error_without(const std::string& key) {
  return error_of([&] { config_of(tiny_config_without(key)); });
}

TEST(ReadConfigTest, ReadsEveryNumber) {
  const ModelConfig config = config_of(tiny_config());
  EXPECT_EQ(config.family, Family::llada);
  EXPECT_EQ(config.architecture, "LLaDAModelLM");
  EXPECT_EQ(config.layers, 2);
  EXPECT_EQ(config.heads, 2);
  EXPECT_EQ(config.kv_heads, 2);
  EXPECT_EQ(config.head_dim, 4);
  EXPECT_EQ(config.width, 8);
  EXPECT_EQ(config.mlp_width, 16);
  EXPECT_EQ(config.embedding_rows, 12);
  EXPECT_EQ(config.head_rows, 12);
  EXPECT_FALSE(config.tied_head);
  EXPECT_EQ(config.rope_theta, 500000.0);
  EXPECT_EQ(config.norm_eps, 1e-5);
  EXPECT_EQ(config.max_positions, 64);
  EXPECT_EQ(config.weights_dtype, DType::bf16);
  EXPECT_EQ(config.declared_dtype, DType::bf16);
  EXPECT_EQ(config.mask_id, 11);
  EXPECT_EQ(config.pad_id, 1);
  EXPECT_EQ(config.bos_id, std::nullopt);
  EXPECT_THAT(config.eos_ids, ElementsAre(1));
}

// Sizes.

TEST(ReadConfigTest, KvHeadsFollowMultiQueryAttentionWhenMissing) {
  EXPECT_EQ(config_of(tiny_config_without("n_kv_heads")).kv_heads, 2);
  Json multi_query = tiny_config_without("n_kv_heads");
  multi_query["multi_query_attention"] = true;
  EXPECT_EQ(config_of(multi_query, tiny_tensors(4)).kv_heads, 1);
  EXPECT_EQ(config_of(tiny_config_with("n_kv_heads", nullptr)).kv_heads, 2);
}

TEST(ReadConfigTest, GroupedQueriesHaveNarrowKeysAndValues) {
  const ModelConfig config = config_of(tiny_config_with("n_kv_heads", 1), tiny_tensors(4));
  EXPECT_EQ(config.kv_heads, 1);
  EXPECT_EQ(config.head_dim, 4);
}

TEST(ReadConfigTest, MultiQueryAttentionContradictsSeveralKvHeads) {
  EXPECT_THAT(error_with("multi_query_attention", true),
              AllOf(HasSubstr("n_kv_heads is 2"), HasSubstr("means 1")));
}

TEST(ReadConfigTest, MlpHiddenSizeWinsOverTheRatio) {
  EXPECT_EQ(config_of(tiny_config_with("mlp_ratio", 100)).mlp_width, 16);
  Json ratio = tiny_config_with("mlp_ratio", 2);
  ratio["mlp_hidden_size"] = nullptr;
  EXPECT_EQ(config_of(ratio).mlp_width, 16);
  ratio["mlp_ratio"] = 1.3;
  EXPECT_THAT(error_of([&] { config_of(ratio); }), HasSubstr("mlp_ratio is 1.3"));
  ratio.erase("mlp_ratio");
  EXPECT_THAT(error_of([&] { config_of(ratio); }), HasSubstr("mlp_hidden_size or mlp_ratio"));
}

TEST(ReadConfigTest, TensorsSizeTheMatricesNotTheConfig) {
  Json config = tiny_config_with("vocab_size", 300);
  config["embedding_size"] = 400;
  EXPECT_EQ(config_of(config).embedding_rows, 12);
  config["embedding_size"] = nullptr;
  EXPECT_EQ(config_of(config).embedding_rows, 12);
}

TEST(ReadConfigTest, AHeadMayNotPredictWhatCannotBeEmbedded) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.ff_out.weight"] = bf16_zeros({10, 8});
  EXPECT_EQ(config_of(tiny_config(), tensors).head_rows, 10);
  tensors["model.transformer.ff_out.weight"] = bf16_zeros({13, 8});
  EXPECT_THAT(error_of([&] { config_of(tiny_config(), tensors); }),
              AllOf(HasSubstr("13 rows"), HasSubstr("12 ids")));
}

TEST(ReadConfigTest, CountsAreIntegersInBounds) {
  for (const char* key : {"d_model", "n_layers", "n_heads", "n_kv_heads", "mlp_hidden_size",
                          "max_sequence_length", "vocab_size", "embedding_size"})
    for (const Json& value :
         {Json(0), Json(-1), Json(8.5), Json("8"), Json(true), Json(std::uint64_t{1} << 63),
          Json(std::int64_t{1} << 40), Json::array({8}), Json(1e300)})
      EXPECT_THAT(error_with(key, value),
                  AllOf(HasSubstr(fmt::format("config.json: {} is ", key)), HasSubstr("an integer from 1")))
          << key << " " << value;
}

TEST(ReadConfigTest, DecimalsArePositiveNumbers) {
  for (const char* key : {"rope_theta", "rms_norm_eps"})
    for (const Json& value : {Json(0), Json(-1e-5), Json("1e-5"), Json(1e300), Json(false)})
      EXPECT_THAT(error_with(key, value), AllOf(HasSubstr(key), HasSubstr("a number above 0")))
          << key << value;
}

TEST(ReadConfigTest, NaNIsNoJson) {
  const TemporaryFolder directory;
  write_checkpoint(directory.path(), tiny_config(), tiny_tensors());
  write_text(directory.path() / "config.json", R"({"rope_theta": NaN})");
  EXPECT_THAT(error_of([&] { Checkpoint::open(directory.path()); }),
              AllOf(HasSubstr("config.json"), HasSubstr("not valid JSON")));
}

TEST(ReadConfigTest, NeededKeysAreMissed) {
  for (const char* key :
       {"d_model", "n_layers", "n_heads", "rope_theta", "rms_norm_eps", "max_sequence_length"})
    EXPECT_THAT(error_without(key), HasSubstr(fmt::format("the key {} is missing", key)));
}

TEST(ReadConfigTest, HeadsDivideTheWidthAndKvHeadsTheHeads) {
  EXPECT_THAT(error_with("n_heads", 3),
              AllOf(HasSubstr("d_model is 8"), HasSubstr("multiple of n_heads, 3")));
  EXPECT_THAT(error_with("n_kv_heads", 3), HasSubstr("multiple of n_kv_heads, 3"));
  EXPECT_THAT(error_with("n_heads", 8), HasSubstr("RoPE needs an even one"));
}

// Switches.

TEST(ReadConfigTest, SwitchesNobodyImplementsAreRefusedByName) {
  const std::vector<std::pair<std::string, Json>> wrong = {{"layer_norm_type", "default"},
                                                           {"layer_norm_type", "low_precision"},
                                                           {"block_type", "sequential"},
                                                           {"activation_type", "swiglu"},
                                                           {"activation_type", "gelu"},
                                                           {"rope", false},
                                                           {"rope_full_precision", false},
                                                           {"rope_scaling", {{"type", "linear"}}},
                                                           {"alibi", true},
                                                           {"block_group_size", 2},
                                                           {"layer_norm_with_affine", false},
                                                           {"bias_for_layer_norm", true},
                                                           {"include_bias", true},
                                                           {"include_qkv_bias", true},
                                                           {"attention_bias", true},
                                                           {"attention_layer_norm", true},
                                                           {"qk_layernorm", true},
                                                           {"clip_qkv", 8.0},
                                                           {"scale_logits", true},
                                                           {"input_emb_norm", true},
                                                           {"sliding_window", 4096},
                                                           {"use_sliding_window", true},
                                                           {"num_experts", 64},
                                                           {"quantization_config", Json::object()},
                                                           {"alibi", "no"},
                                                           {"rope", 1}};
  for (const auto& [key, value] : wrong)
    EXPECT_THAT(error_with(key, value),
                AllOf(HasSubstr(fmt::format("config.json: {} is ", key)), HasSubstr("is supported")))
        << key << " " << value;
  EXPECT_THAT(error_with("layer_norm_type", "default"), HasSubstr("\"default\"; only \"rms\""));
  EXPECT_THAT(error_with("clip_qkv", 8.0), HasSubstr("8.0; only null"));
}

TEST(ReadConfigTest, SwitchesWhoseAbsenceMeansSomethingElseAreNeeded) {
  for (const char* key : {"layer_norm_type", "block_type", "activation_type", "rope"})
    EXPECT_THAT(error_without(key), HasSubstr(fmt::format("{} is missing; only", key)));
}

TEST(ReadConfigTest, HarmlessSwitchesMayBeAbsentNullOrUnknown) {
  Json config = tiny_config();
  for (const char* key : {"alibi", "include_bias", "rope_full_precision", "block_group_size"})
    config.erase(key);
  config["bias_for_layer_norm"] = nullptr;
  config["clip_qkv"] = nullptr;
  config["a_key_of_tomorrow"] = {{"x", 1}};
  EXPECT_EQ(config_of(config).layers, 2);
}

// Families.

TEST(ReadConfigTest, MmadaIsToldByItsArchitecture) {
  const ModelConfig config = config_of(tiny_config_with("architectures", {"MMadaModelLM"}));
  EXPECT_EQ(config.family, Family::mmada);
  EXPECT_EQ(family_name(config.family), "mmada");
}

TEST(ReadConfigTest, CopiesOfMmadaThatNameLLaDAsClassAreTold) {
  EXPECT_EQ(config_of(tiny_config_with("codebook_size", 8192)).family, Family::mmada);
  EXPECT_EQ(config_of(tiny_config_with("model_type", "mmada")).family, Family::mmada);
}

TEST(ReadConfigTest, ModelTypeAndTensorsServeWhereThereIsNoArchitecture) {
  Json config = tiny_config_without("architectures");
  EXPECT_EQ(config_of(config).family, Family::llada);
  EXPECT_EQ(config_of(config).architecture, "llada");
  config["architectures"] = Json::array();
  config["model_type"] = "mmada";
  EXPECT_EQ(config_of(config).family, Family::mmada);
  config.erase("model_type");
  EXPECT_EQ(config_of(config).architecture, "LLaDAModelLM");
}

TEST(ReadConfigTest, UnsupportedArchitecturesAreNamed) {
  for (const char* name : {"LLaDA2MoeModelLM", "MixtralForCausalLM", "GPT2LMHeadModel", "Nonsense"})
    EXPECT_THAT(error_with("architectures", {name}),
                AllOf(HasSubstr(fmt::format("\"{}\" is not supported", name)),
                      HasSubstr("LLaDAModelLM, MMadaModelLM")));
  EXPECT_THAT(error_with("architectures", "LLaDAModelLM"), HasSubstr("a list of class names"));
  EXPECT_THAT(error_with("architectures", {1}), HasSubstr("architectures holds 1"));
  Json config = tiny_config_without("architectures");
  config["model_type"] = "llada2_moe";
  EXPECT_THAT(error_of([&] { config_of(config); }), HasSubstr("model_type \"llada2_moe\" is not supported"));
  config["model_type"] = 7;
  EXPECT_THAT(error_of([&] { config_of(config); }), HasSubstr("model_type is 7"));
  config.erase("model_type");
  EXPECT_THAT(error_of([&] { config_of(config, {{"x", bf16_zeros({1})}}); }), HasSubstr("names neither"));
}

// Token ids.

TEST(ReadConfigTest, IdZeroIsAnIdAndNullIsNone) {
  Json config = tiny_config_with("pad_token_id", 0);
  config["eos_token_id"] = 2;
  EXPECT_EQ(config_of(config).pad_id, 0);
  EXPECT_EQ(config_of(config).eos_id(), 2);
  config["pad_token_id"] = nullptr;
  config["eos_token_id"] = nullptr;
  EXPECT_EQ(config_of(config).pad_id, std::nullopt);
  EXPECT_EQ(config_of(config).eos_id(), std::nullopt);
  EXPECT_EQ(config_of(tiny_config_without("mask_token_id")).mask_id, std::nullopt);
}

TEST(ReadConfigTest, APadWithoutARowIsNone) {
  for (const Json& value : {Json(-1), Json(12), Json(32000)})
    EXPECT_EQ(config_of(tiny_config_with("pad_token_id", value)).pad_id, std::nullopt) << value;
  EXPECT_THAT(error_with("pad_token_id", "1"), HasSubstr("a token id"));
}

TEST(ReadConfigTest, PadMayEqualEos) {
  const ModelConfig config = config_of(tiny_config());
  EXPECT_EQ(config.pad_id, config.eos_id());
}

TEST(ReadConfigTest, GenerationConfigAddsEndTokensAndABeginning) {
  const ModelConfig config =
      config_of(tiny_config(), tiny_tensors(), {{"bos_token_id", 3}, {"eos_token_id", {5, 1, 6}}});
  EXPECT_THAT(config.eos_ids, ElementsAre(1, 5, 6));
  EXPECT_EQ(config.bos_id, 3);
}

TEST(ReadConfigTest, ConfigsOwnBeginningWins) {
  EXPECT_EQ(config_of(tiny_config_with("bos_token_id", 2), tiny_tensors(), {{"bos_token_id", 3}}).bos_id, 2);
}

TEST(ReadConfigTest, IdsLieInTheVocabulary) {
  for (const char* key : {"mask_token_id", "bos_token_id", "eos_token_id"}) {
    EXPECT_THAT(error_with(key, 12), AllOf(HasSubstr(fmt::format("{} is 12", key)), HasSubstr("below 12")));
    for (const Json& value : {Json(-1), Json("1"), Json(1.0), Json(std::int64_t{1} << 31), Json::object()})
      EXPECT_THAT(error_with(key, value), AllOf(HasSubstr(key), HasSubstr("a token id"))) << key << value;
  }
  EXPECT_THAT(error_with("eos_token_id", {1, 40}), HasSubstr("eos_token_id is 40"));
  EXPECT_THAT(error_of([] {
                config_of(tiny_config(), tiny_tensors(), {{"eos_token_id", 40}});
              }),
              HasSubstr("generation_config.json: eos_token_id is 40"));
  EXPECT_THAT(error_of([] { config_of(tiny_config(), tiny_tensors(), Json::array({1})); }),
              HasSubstr("generation_config.json should hold an object"));
}

TEST(ReadConfigTest, ConfigHoldsAnObject) {
  EXPECT_THAT(error_of([] { config_of(Json::array()); }),
              HasSubstr("config.json should hold an object, not an array"));
}

TEST(ReadConfigTest, OtherTorchDTypesAreNoHint) {
  EXPECT_EQ(config_of(tiny_config_with("torch_dtype", "float8_e4m3fn")).declared_dtype, std::nullopt);
  Json config = tiny_config_without("torch_dtype");
  config["dtype"] = "float16";
  EXPECT_EQ(config_of(config).declared_dtype, DType::f16);
}

}  // namespace
}  // namespace sinkscope
