#include "checkpoint/shards.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

namespace sinkscope {

std::vector<std::vector<StoredTensor>> plan_shards(const std::vector<StoredTensor>& tensors,
                                                   std::uint64_t largest_bytes) {
  std::vector<std::vector<StoredTensor>> shards(1);
  std::uint64_t filled = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::uint64_t bytes = tensor.byte_count();
    const bool fits = filled <= largest_bytes && bytes <= largest_bytes - filled;
    if (!fits && !shards.back().empty()) {
      shards.emplace_back();
      filled = 0;
    }
    shards.back().push_back(tensor);
    filled += bytes;
  }
  return shards;
}

std::string shard_name(std::size_t index, std::size_t count) {
  if (count == 1) return "model.safetensors";
  return fmt::format("model-{:05}-of-{:05}.safetensors", index + 1, count);
}

std::string weight_index_text(const std::vector<std::vector<StoredTensor>>& shards) {
  std::uint64_t total = 0;
  std::map<std::string, std::string> weight_map;  // sorted, as the hub's are
  for (std::size_t i = 0; i < shards.size(); ++i)
    for (const StoredTensor& tensor : shards[i]) {
      total += tensor.byte_count();
      weight_map.emplace(tensor.name, shard_name(i, shards.size()));
    }
  const nlohmann::ordered_json index{{"metadata", {{"total_size", total}}}, {"weight_map", weight_map}};
  return index.dump(2) + "\n";
}

}  // namespace sinkscope
