#include "checkpoint/shards.h"

#include "checkpoint/weight_index.h"
#include "checkpoint_fixture.h"

namespace sinkscope {
namespace {

std::vector<StoredTensor> of_sizes(const std::vector<std::int64_t>& sizes) {
  std::vector<StoredTensor> tensors;
  for (const std::int64_t size : sizes)
    tensors.push_back({fmt::format("t{}", tensors.size()), DType::u8, {size}});
  return tensors;
}

std::vector<std::size_t> counts(const std::vector<std::int64_t>& sizes, std::uint64_t largest) {
  std::vector<std::size_t> result;
  for (const auto& shard : plan_shards(of_sizes(sizes), largest)) result.push_back(shard.size());
  return result;
}

TEST(ShardsTest, AFileTakesTensorsUntilTheNextWouldNotFit) {
  using Counts = std::vector<std::size_t>;
  EXPECT_EQ(counts({4, 4, 4}, 8), (Counts{2, 1}));
  EXPECT_EQ(counts({4, 4, 4}, 12), (Counts{3}));
  EXPECT_EQ(counts({1, 20, 1, 1}, 8), (Counts{1, 1, 2}));  // the one too large stands alone
  EXPECT_EQ(counts({20, 20}, 8), (Counts{1, 1}));
}

TEST(ShardsTest, NamesAreTheHubs) {
  EXPECT_EQ(shard_name(0, 1), "model.safetensors");
  EXPECT_EQ(shard_name(1, 6), "model-00002-of-00006.safetensors");
}

TEST(ShardsTest, TheIndexNamesEveryTensorsFileAndTheTotal) {
  const std::string text = weight_index_text(plan_shards(of_sizes({4, 4, 4}), 8));
  const auto map = parse_weight_index(text, "i.json");
  EXPECT_EQ(map.at("t1"), "model-00001-of-00002.safetensors");
  EXPECT_EQ(map.at("t2"), "model-00002-of-00002.safetensors");
  EXPECT_EQ(parse_json(text, "i.json")["metadata"]["total_size"], 12);
}

}  // namespace
}  // namespace sinkscope
