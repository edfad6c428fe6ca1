#include "measure/overlap.h"

#include <bit>
#include <numeric>

namespace sinkscope {
namespace {

// Sets of positions as bits: each pair of heads is compared at each step.
class SetTable {
 public:
  SetTable(std::size_t sets, std::size_t positions) : words_((positions + 63) / 64), bits_(sets * words_) {}

  void insert(std::size_t set, std::span<const int> keys) {
    for (const int key : keys) bits_[set * words_ + key / 64] |= std::uint64_t{1} << (key % 64);
  }

  void compare(std::size_t a, std::size_t b, Agreement& agreement) const {
    int both = 0, either = 0;
    for (std::size_t i = 0; i < words_; ++i) {
      const std::uint64_t x = bits_[a * words_ + i], y = bits_[b * words_ + i];
      both += std::popcount(x & y);
      either += std::popcount(x | y);
    }
    if (either == 0) return;
    agreement.sum += static_cast<double>(both) / either;
    ++agreement.pairs;
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

void add_mass(OverlapSums& sums, const Step& step) {
  for (std::size_t map = 0; map < step.shape.maps(); ++map) {
    const std::span<const float> columns = step.columns_of(map);
    const std::size_t layer = map / step.shape.heads;
    sums.mass[layer] += std::accumulate(columns.begin(), columns.end(), 0.0);
    for (const int key : step.sinks[map]) sums.sink_mass[layer] += columns[key];
  }
}

void compare_layers(OverlapSums& sums, const Step& step) {
  const std::size_t layers = step.shape.layers;
  SetTable sets(layers, step.shape.positions);
  for (std::size_t map = 0; map < step.shape.maps(); ++map)
    sets.insert(map / step.shape.heads, step.sinks[map]);
  for (std::size_t a = 0; a < layers; ++a)
    for (std::size_t b = a; b < layers; ++b) {
      sets.compare(a, b, sums.layers[a * layers + b]);
      sums.layers[b * layers + a] = sums.layers[a * layers + b];
    }
}

void compare_heads(OverlapSums& sums, const Step& step) {
  const std::size_t heads = step.shape.heads;
  SetTable sets(step.shape.maps(), step.shape.positions);
  for (std::size_t map = 0; map < step.shape.maps(); ++map) sets.insert(map, step.sinks[map]);
  for (std::size_t layer = 0; layer < step.shape.layers; ++layer)
    for (std::size_t a = 0; a < heads; ++a)
      for (std::size_t b = a + 1; b < heads; ++b)
        sets.compare(layer * heads + a, layer * heads + b, sums.heads[layer]);
}

}  // namespace

void add_step(OverlapSums& sums, const Step& step) {
  const std::size_t layers = step.shape.layers;
  sums.sink_mass.resize(layers);
  sums.mass.resize(layers);
  sums.layers.resize(layers * layers);
  sums.heads.resize(layers);
  add_mass(sums, step);
  compare_layers(sums, step);
  compare_heads(sums, step);
}

}  // namespace sinkscope
