#include "checkpoint/random_checkpoint.h"

#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RandomCheckpoint tiny() { return {.shape = model_shape("llada-tiny"), .seed = 5}; }

std::uint64_t parameters(const ModelShape& shape) {
  std::uint64_t sum = 0;
  for (const RandomTensor& tensor : shape.weights(shape.config))
    sum += StoredTensor{tensor.name, DType::u8, tensor.shape}.byte_count();
  return sum;
}

bool same_bytes(const TensorView& a, const TensorView& b) {
  return std::equal(a.bytes.begin(), a.bytes.end(), b.bytes.begin(), b.bytes.end());
}

TEST(ModelShapesTest, CountsAreThePublishedOnes) {
  EXPECT_EQ(parameters(model_shape("llada-8b")), 8'015'581'184U);
  EXPECT_EQ(model_shape("llada-8b").weights(model_shape("llada-8b").config).size(), 291U);
  EXPECT_EQ(parameters(model_shape("mmada-8b")), 8'082'690'048U);
}

TEST(ModelShapesTest, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  try {
    model_shape("llada-9b");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), AllOf(HasSubstr("\"llada-9b\""), HasSubstr("llada-8b, mmada-8b")));
  }
}

TEST(RandomCheckpointTest, OpensAsTheModelItIsLike) {
  for (const ModelShape& shape : model_shapes()) {
    RandomCheckpoint small{.shape = shape, .seed = 1};
    small.shape.config.layers = 3;  // and few rows: the test is about keys, not sizes
    small.shape.config.embedding_rows = small.shape.config.head_rows = 9000;
    small.shape.config.width = small.shape.config.heads * 2;
    small.shape.config.head_dim = 2;
    small.shape.config.mlp_width = 8;
    small.shape.config.mask_id = 8999;
    small.shape.config.eos_ids = {8998};
    small.shape.config.pad_id = 8998;
    small.shape.config.bos_id = 8997;
    const TemporaryFolder root;
    write_random_checkpoint(small, root.path() / "made");
    const ModelConfig read = Checkpoint::open(root.path() / "made").config();
    const ModelConfig& given = small.shape.config;
    EXPECT_EQ(read.family, given.family);
    EXPECT_EQ(read.architecture, given.architecture);
    EXPECT_EQ(read.layers, 3);
    EXPECT_EQ(read.heads, given.heads);
    EXPECT_EQ(read.kv_heads, given.kv_heads);
    EXPECT_EQ(read.mlp_width, 8);
    EXPECT_EQ(read.head_rows, 9000);
    EXPECT_EQ(read.rope_theta, given.rope_theta);
    EXPECT_EQ(read.norm_eps, given.norm_eps);
    EXPECT_EQ(read.max_positions, given.max_positions);
    EXPECT_EQ(read.weights_dtype, given.weights_dtype);
    EXPECT_EQ(read.declared_dtype, given.weights_dtype);
    EXPECT_EQ(read.mask_id, given.mask_id);
    EXPECT_EQ(read.bos_id, given.bos_id);
    EXPECT_EQ(read.eos_ids, given.eos_ids);
  }
}

TEST(RandomCheckpointTest, ShardsAndThreadsDoNotChangeTheWeights) {
  const TemporaryFolder root;
  RandomCheckpoint checkpoint = tiny();
  EXPECT_EQ(write_random_checkpoint(checkpoint, root.path() / "one").weight_files, 1U);
  checkpoint.shard_bytes = 50'000;
  checkpoint.threads = 3;
  const WrittenCheckpoint written = write_random_checkpoint(checkpoint, root.path() / "many");
  EXPECT_GT(written.weight_files, 3U);

  const Checkpoint one = Checkpoint::open(root.path() / "one"), many = Checkpoint::open(root.path() / "many");
  EXPECT_EQ(one.tensors().size(), written.tensors);
  EXPECT_EQ(many.weight_files().size(), written.weight_files);
  EXPECT_EQ(many.weight_files().front().filename(),
            fmt::format("model-00001-of-{:05}.safetensors", written.weight_files));
  std::uint64_t bytes = 0;
  for (const auto& [name, view] : one.tensors()) {
    EXPECT_TRUE(same_bytes(view, many.tensor(name))) << name;
    bytes += view.bytes.size();
  }
  EXPECT_EQ(written.weight_bytes, bytes);
  EXPECT_EQ(read_json_file(root.path() / "many/model.safetensors.index.json")["metadata"]["total_size"],
            bytes);

  checkpoint.seed = 6;
  write_random_checkpoint(checkpoint, root.path() / "other");
  constexpr const char* name = "model.transformer.blocks.1.up_proj.weight";
  EXPECT_FALSE(same_bytes(Checkpoint::open(root.path() / "other").tensor(name), one.tensor(name)));
}

TEST(RandomCheckpointTest, TakesNoMoreRoomThanItAskedFor) {
  const TemporaryFolder root;
  write_random_checkpoint(tiny(), root.path() / "made");
  std::uint64_t taken = 0;
  for (const auto& entry : std::filesystem::directory_iterator(root.path() / "made"))
    taken += entry.file_size();
  EXPECT_LE(taken, needed_bytes(tiny()));
}

TEST(RandomCheckpointTest, TooLittleRoomIsSaidInAdvance) {
  const TemporaryFolder root;
  check_free_space(root.path() / "a/b/c", 1);
  EXPECT_THAT(error_of([&] { check_free_space(root.path() / "a/b/c", std::uint64_t{1} << 62); }),
              AllOf(HasSubstr("a/b/c needs 4611686018.4"), HasSubstr("free")));
}

TEST(RandomCheckpointTest, AFailureLeavesNothingBehind) {
  const TemporaryFolder root;
  const auto fail = [](double) { throw Error("stop"); };
  EXPECT_EQ(error_of([&] { write_random_checkpoint(tiny(), root.path() / "made", fail); }), "stop");
  EXPECT_TRUE(std::filesystem::is_empty(root.path()));
}

TEST(RandomCheckpointTest, AFolderThatExistsIsLeftAlone) {
  const TemporaryFolder root;
  EXPECT_THAT(error_of([&] { write_random_checkpoint(tiny(), root.path()); }), HasSubstr("exists already"));
}

}  // namespace
}  // namespace sinkscope
