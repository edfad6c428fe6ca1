#include <ATen/ops/empty.h>
#include <sinkscope/error.h>
#include <sinkscope/key_value_cache.h>

#include <algorithm>

namespace sinkscope {

KeyValueCache::KeyValueCache(const ModelConfig& config, at::ScalarType dtype, const at::Device& device,
                             const std::vector<std::int64_t>& capacities)
    : begins_{0}, lengths_(capacities.size(), 0) {
  for (const std::int64_t capacity : capacities) begins_.push_back(begins_.back() + capacity);
  const std::vector<std::int64_t> shape{begins_.back(), config.kv_heads * config.head_dim};
  const auto options = at::TensorOptions(dtype).device(device);
  for (std::int64_t layer = 0; layer < config.layers; ++layer) {
    keys_.push_back(at::empty(shape, options));
    values_.push_back(at::empty(shape, options));
  }
}

std::int64_t KeyValueCache::capacity(std::int64_t slot) const {
  return begins_[static_cast<std::size_t>(slot) + 1] - begins_[static_cast<std::size_t>(slot)];
}

void KeyValueCache::truncate(std::int64_t slot, std::int64_t length) {
  std::int64_t& own = lengths_[static_cast<std::size_t>(slot)];
  own = std::min(own, length);
}

std::int64_t KeyValueCache::bytes(const ModelConfig& config, at::ScalarType dtype, std::int64_t positions) {
  return 2 * config.layers * positions * config.kv_heads * config.head_dim *
         static_cast<std::int64_t>(c10::elementSize(dtype));
}

}  // namespace sinkscope
