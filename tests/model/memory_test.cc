#include <gtest/gtest.h>
#include <sinkscope/memory.h>

#include <filesystem>

namespace sinkscope {
namespace {

Checkpoint tiny_llada() {
  return Checkpoint::open(std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "models" / "tiny-llada");
}

TEST(Memory, WeightsAreCountedInTheFormTheyAreKeptIn) {
  const Checkpoint checkpoint = tiny_llada();
  const ModelConfig& c = checkpoint.config();
  const std::int64_t kv = c.kv_heads * c.head_dim, query = c.heads * c.head_dim;
  const std::int64_t matrices =
      c.layers * (c.width * (2 * query + 2 * kv) + 3 * c.width * c.mlp_width) + c.head_rows * c.width;
  const std::int64_t norms = (2 * c.layers + 1) * c.width;
  const std::int64_t columns =
      c.layers * (query + 2 * kv + c.width + 2 * c.mlp_width + c.width) + c.head_rows;
  MemoryUse use;
  EXPECT_EQ(estimate_memory(checkpoint, use).weights, 4 * (matrices + norms));
  use.dtype = at::kBFloat16;
  EXPECT_EQ(estimate_memory(checkpoint, use).weights, 2 * (matrices + norms));
  use.weights = WeightFormat::int8;
  EXPECT_EQ(estimate_memory(checkpoint, use).weights, matrices + 8 * columns + 2 * norms);
}

TEST(Memory, ColumnsTakeFourFloatsForEachLayerHeadAndPosition) {
  const Checkpoint checkpoint = tiny_llada();
  const ModelConfig& c = checkpoint.config();
  MemoryUse use;
  use.positions = 1000;
  const std::int64_t recorded = estimate_memory(checkpoint, use).observations;
  EXPECT_EQ(recorded, 4 * c.layers * c.heads * 1000 * 4);  // three classes and the diagonal, float32
  use.capture = Capture::none;
  EXPECT_EQ(estimate_memory(checkpoint, use).observations, 0);
  use.maps = 2;
  EXPECT_EQ(estimate_memory(checkpoint, use).observations, 2 * 1000 * 1000 * 4);
}

TEST(Memory, EverythingThatIsAskedForAddsToIt) {
  const Checkpoint checkpoint = tiny_llada();
  MemoryUse use;
  use.positions = 100;
  const std::int64_t before = estimate_memory(checkpoint, use).total();
  const auto more = [&](auto change) {
    MemoryUse other = use;
    change(other);
    return estimate_memory(checkpoint, other).total() > before;
  };
  EXPECT_TRUE(more([](MemoryUse& u) { u.positions = 101; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.sequences = 2; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.threads = 2; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.capture = Capture::full; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.removes_keys = true; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.keeps_logits = true; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.listed_keys = 10; }));
  EXPECT_TRUE(more([](MemoryUse& u) { u.compares = true; }));
}

TEST(Memory, AbsurdWishesDoNotOverflow) {
  MemoryUse use;
  use.positions = std::int64_t{1} << 24;
  use.sequences = 2 * 65536;
  use.maps = 1 << 16;
  EXPECT_GT(estimate_memory(tiny_llada(), use).total(), std::int64_t{1} << 50);
}

}  // namespace
}  // namespace sinkscope
