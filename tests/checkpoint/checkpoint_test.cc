// Whole checkpoint folders: single files, shards, missing and surplus tensors, tied heads.
#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_opening(const std::filesystem::path& directory) {
  return error_of([&] { Checkpoint::open(directory); });
}

std::string error_with_tensors(const TestTensors& tensors, const Json& config = tiny_config()) {
  return error_of([&] { config_of(config, tensors); });
}

constexpr const char* first_shard = "model-00001-of-00002.safetensors";
constexpr const char* second_shard = "model-00002-of-00002.safetensors";

// tiny_tensors() dealt out to two shards in turns, so that every block lies in both; returns the index.
Json write_shards(const std::filesystem::path& directory) {
  TestTensors shards[2];
  Json index = {{"metadata", {{"total_size", 1}}}, {"weight_map", Json::object()}};
  int turn = 0;
  for (const auto& [name, tensor] : tiny_tensors()) {
    shards[turn][name] = tensor;
    index["weight_map"][name] = turn == 0 ? first_shard : second_shard;
    turn = 1 - turn;
  }
  write_text(directory / "config.json", tiny_config().dump());
  write_text(directory / first_shard, safetensors_file(shards[0]));
  write_text(directory / second_shard, safetensors_file(shards[1]));
  write_text(directory / "model.safetensors.index.json", index.dump());
  return index;
}

TEST(CheckpointTest, OpensTheGoldenModels) {
  const Checkpoint llada = Checkpoint::open(SINKSCOPE_TEST_DATA "/golden/llada-random");
  EXPECT_EQ(llada.config().family, Family::llada);
  EXPECT_EQ(llada.config().weights_dtype, DType::f32);
  EXPECT_EQ(llada.tensors().size(), 30u);
  EXPECT_EQ(llada.tensor("model.transformer.blocks.2.ff_out.weight").shape,
            (std::vector<std::int64_t>{64, 160}));
  const Checkpoint mmada = Checkpoint::open(SINKSCOPE_TEST_DATA "/golden/mmada-random");
  EXPECT_EQ(mmada.config().family, Family::mmada);
  EXPECT_EQ(mmada.config().head_rows, 420);
}

TEST(CheckpointTest, OpensTheBuiltInModel) {
  const Checkpoint checkpoint = Checkpoint::open(SINKSCOPE_SOURCE_DIR "/models/tiny-llada");
  EXPECT_EQ(checkpoint.config().layers, 6);
  EXPECT_EQ(checkpoint.config().weights_dtype, DType::bf16);
  EXPECT_EQ(checkpoint.config().mask_id, 2047);
  EXPECT_EQ(checkpoint.config().bos_id, 2039);
}

TEST(CheckpointTest, OpensTheOtherFamilies) {
  const auto config_of = [](const std::string& name) {
    return Checkpoint::open(std::filesystem::path(SINKSCOPE_TEST_DATA) / "golden" / name).config();
  };
  const ModelConfig dream = config_of("dream-random");
  EXPECT_EQ(dream.family, Family::dream);
  EXPECT_EQ(dream.generation, Generation::shifted_masked);
  EXPECT_TRUE(dream.qkv_bias);
  EXPECT_EQ(dream.mask_id, 299);
  const ModelConfig llama = config_of("llama-random");
  EXPECT_EQ(llama.family, Family::llama);
  EXPECT_TRUE(llama.causal());
  EXPECT_FALSE(llama.qkv_bias);
  EXPECT_EQ(llama.kv_heads, 2);
  const ModelConfig qwen = config_of("qwen2-random");
  EXPECT_EQ(qwen.family, Family::qwen2);
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_TRUE(qwen.tied_head);
}

TEST(CheckpointTest, TensorsStayAfterAMoveAndARelease) {
  const TemporaryFolder directory;
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.ln_f.weight"].bytes.assign(16, '\x3F');
  write_checkpoint(directory.path(), tiny_config(), tensors);
  Checkpoint opened = Checkpoint::open(directory.path());
  const Checkpoint checkpoint = std::move(opened);
  release_pages(checkpoint.tensor("model.transformer.ln_f.weight").bytes);
  EXPECT_EQ(checkpoint.tensor("model.transformer.ln_f.weight").bytes[15], std::byte{0x3F});
  EXPECT_EQ(checkpoint.directory(), directory.path());
  EXPECT_EQ(checkpoint.config_file(), directory.path() / "config.json");
  EXPECT_EQ(checkpoint.find("nothing"), nullptr);
  EXPECT_THAT(error_of([&] { checkpoint.tensor("nothing"); }), HasSubstr("no tensor \"nothing\""));
}

// Folders.

TEST(CheckpointTest, FoldersWithoutTheirFilesAreNamed) {
  const TemporaryFolder directory;
  EXPECT_THAT(error_opening(directory.path() / "none"), HasSubstr("none is not a directory"));
  EXPECT_THAT(error_opening(directory.path()), HasSubstr("holds no config.json"));
  write_text(directory.path() / "config.json", tiny_config().dump());
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("no weights"), HasSubstr("model.safetensors")));
  write_text(directory.path() / "pytorch_model.bin", "PK");
  EXPECT_THAT(error_opening(directory.path()), HasSubstr("convert it to safetensors"));
}

TEST(CheckpointTest, PointersInPlaceOfFilesAreNamed) {
  const TemporaryFolder directory;
  write_checkpoint(directory.path(), tiny_config(), tiny_tensors());
  const char* pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
  write_text(directory.path() / "model.safetensors", pointer);
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("git lfs pull")));
  write_text(directory.path() / "config.json", pointer);
  EXPECT_THAT(error_opening(directory.path()), AllOf(HasSubstr("config.json"), HasSubstr("git lfs pull")));
}

TEST(CheckpointTest, TruncatedWeightsAreNotPartlyLoaded) {
  const TemporaryFolder directory;
  write_checkpoint(directory.path(), tiny_config(), tiny_tensors());
  const auto path = directory.path() / "model.safetensors";
  const auto size = std::filesystem::file_size(path);
  std::filesystem::resize_file(path, size - 1);
  EXPECT_THAT(error_opening(directory.path()), AllOf(HasSubstr("truncated"), HasSubstr(std::to_string(size)),
                                                     HasSubstr(std::to_string(size - 1))));
}

// Shards.

TEST(CheckpointTest, BlocksMayLieInSeveralShards) {
  const TemporaryFolder directory;
  write_shards(directory.path());
  const Checkpoint checkpoint = Checkpoint::open(directory.path());
  EXPECT_EQ(checkpoint.tensors().size(), 21u);
  EXPECT_THAT(checkpoint.weight_files(),
              ::testing::ElementsAre(directory.path() / first_shard, directory.path() / second_shard));
}

TEST(CheckpointTest, MissingShardsAreListed) {
  const TemporaryFolder directory;
  write_shards(directory.path());
  std::filesystem::remove(directory.path() / second_shard);
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("lacks 1 of the 2 files"), HasSubstr(second_shard)));
}

TEST(CheckpointTest, IndexAndShardsHaveToAgree) {
  const TemporaryFolder directory;
  const Json index = write_shards(directory.path());
  const auto path = directory.path() / "model.safetensors.index.json";

  Json more = index;
  more["weight_map"]["model.extra"] = first_shard;
  write_text(path, more.dump());
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("its files do not hold"), HasSubstr("\"model.extra\" in model-00001")));

  Json less = index;
  less["weight_map"].erase("model.transformer.wte.weight");
  write_text(path, less.dump());
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("does not name"), HasSubstr("model.transformer.wte.weight")));

  Json elsewhere = index;
  std::string& file = elsewhere["weight_map"]["model.transformer.wte.weight"].get_ref<std::string&>();
  file = file == first_shard ? second_shard : first_shard;
  write_text(path, elsewhere.dump());
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("do not hold"), HasSubstr("model.transformer.wte.weight")));
}

TEST(CheckpointTest, ATensorInTwoShardsIsNamed) {
  const TemporaryFolder directory;
  write_shards(directory.path());
  TestTensors both = tiny_tensors();
  write_text(directory.path() / first_shard, safetensors_file(both));
  EXPECT_THAT(error_opening(directory.path()),
              AllOf(HasSubstr("does not name"), HasSubstr("it names model-00002")));
}

TEST(CheckpointTest, OneFileIsPreferredToAnIndex) {
  const TemporaryFolder directory;
  write_shards(directory.path());
  write_text(directory.path() / "model.safetensors", safetensors_file(tiny_tensors()));
  EXPECT_EQ(Checkpoint::open(directory.path()).weight_files().size(), 1u);
}

// Tensors.

TEST(CheckpointTest, MissingTensorsAreListed) {
  TestTensors tensors = tiny_tensors();
  tensors.erase("model.transformer.blocks.1.up_proj.weight");
  EXPECT_THAT(
      error_with_tensors(tensors),
      AllOf(HasSubstr("lacks 1 tensor: model.transformer.blocks.1.up_proj.weight"), Not(HasSubstr("has"))));
  EXPECT_THAT(error_with_tensors(tiny_tensors(), tiny_config_with("n_layers", 4)),
              AllOf(HasSubstr("lacks 18 tensors"), HasSubstr("and 8 more")));
  tensors.erase("model.transformer.wte.weight");
  EXPECT_THAT(error_with_tensors(tensors), HasSubstr("lacks 1 tensor: model.transformer.wte.weight"));
}

TEST(CheckpointTest, AnEnormousLayerCountIsRefusedBeforeAnythingIsBuilt) {
  EXPECT_THAT(error_with_tensors(tiny_tensors(), tiny_config_with("n_layers", 2'000'000'000)),
              HasSubstr("n_layers"));
}

TEST(CheckpointTest, SurplusTensorsAreListedWithWhatTheyMean) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.blocks.0.q_norm.weight"] = bf16_zeros({4});
  EXPECT_THAT(error_with_tensors(tensors),
              AllOf(HasSubstr("has 1 tensor"), HasSubstr("blocks.0.q_norm.weight"),
                    HasSubstr("query and key norms")));
  tensors = tiny_tensors();
  tensors["model.transformer.blocks.0.q_proj.bias"] = bf16_zeros({8});
  EXPECT_THAT(error_with_tensors(tensors), HasSubstr("biases"));
  tensors = tiny_tensors();
  tensors["model.transformer.wpe.weight"] = bf16_zeros({64, 8});
  EXPECT_THAT(error_with_tensors(tensors), HasSubstr("learned positions"));
  EXPECT_THAT(error_with_tensors(tiny_tensors(), tiny_config_with("n_layers", 1)),
              HasSubstr("has 9 tensors that config.json does not account for"));
}

TEST(CheckpointTest, WrongShapesAreNamedWithBothShapes) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.blocks.0.k_proj.weight"] = bf16_zeros({4, 8});
  EXPECT_THAT(error_with_tensors(tensors),
              HasSubstr("blocks.0.k_proj.weight should be [8, 8] and is [4, 8]"));
  tensors = tiny_tensors();
  tensors["model.transformer.wte.weight"] = bf16_zeros({12, 6});
  EXPECT_THAT(error_with_tensors(tensors), AllOf(HasSubstr("[vocabulary, 8]"), HasSubstr("[12, 6]")));
}

TEST(CheckpointTest, WeightsAreFloatsOfSixteenOrThirtyTwoBits) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.ln_f.weight"] = {"F64", {8}, std::string(64, '\0')};
  EXPECT_THAT(error_with_tensors(tensors),
              AllOf(HasSubstr("F32, F16 or BF16"), HasSubstr("ln_f.weight is F64")));
}

TEST(CheckpointTest, MixedWeightsReportTheTypeOfMostElements) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.ln_f.weight"] = {"F32", {8}, std::string(32, '\0')};
  EXPECT_EQ(config_of(tiny_config(), tensors).weights_dtype, DType::bf16);
}

// The four combinations of a tied or own head in config.json and a head in the file: only own and absent is
// wrong.
TEST(CheckpointTest, OwnHeadPresent) { EXPECT_FALSE(config_of(tiny_config()).tied_head); }

TEST(CheckpointTest, OwnHeadAbsent) {
  TestTensors tensors = tiny_tensors();
  tensors.erase("model.transformer.ff_out.weight");
  EXPECT_THAT(error_with_tensors(tensors),
              AllOf(HasSubstr("model.transformer.ff_out.weight"), HasSubstr("weight_tying false")));
}

TEST(CheckpointTest, TiedHeadAbsent) {
  TestTensors tensors = tiny_tensors();
  tensors.erase("model.transformer.ff_out.weight");
  const ModelConfig config = config_of(tiny_config_with("weight_tying", true), tensors);
  EXPECT_TRUE(config.tied_head);
  EXPECT_EQ(config.head_rows, 12);
}

TEST(CheckpointTest, TiedHeadPresentIsIgnored) {
  TestTensors tensors = tiny_tensors();
  tensors["model.transformer.ff_out.weight"] = bf16_zeros({10, 8});
  const ModelConfig config = config_of(tiny_config_with("weight_tying", true), tensors);
  EXPECT_TRUE(config.tied_head);
  EXPECT_EQ(config.head_rows, 12);
}

TEST(CheckpointTest, WithoutAWordOnTyingTheFileDecides) {
  TestTensors tensors = tiny_tensors();
  EXPECT_FALSE(config_of(tiny_config_without("weight_tying"), tensors).tied_head);
  tensors.erase("model.transformer.ff_out.weight");
  EXPECT_TRUE(config_of(tiny_config_without("weight_tying"), tensors).tied_head);
}

}  // namespace
}  // namespace sinkscope
