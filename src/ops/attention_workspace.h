// Sizes of the tiles and the memory they take. Part of attention_kernels.cc, once per instruction set.
#pragma once

#include <cstddef>

#include "ops/attention_product.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }
constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Queries per tile: as many as keep the tile's scores within the second-level cache, and enough to be worth
// reading all keys and values once more.
constexpr std::int64_t most_rows = 48;
constexpr std::int64_t fewest_rows = 24;
constexpr std::int64_t tile_bytes = 256 * 1024;
static_assert(most_rows % register_rows == 0 && fewest_rows % register_rows == 0);

// Keys per block of the product with the values: one panel of them stays in the first-level cache.
constexpr std::int64_t block_steps = 4096 / panel_columns;

// Sizes in elements that follow from S keys and D values.
struct Shape {
  std::int64_t keys, width;
  std::int64_t padded_keys;   // whole panels
  std::int64_t padded_width;  // whole panels
  std::int64_t key_steps, padded_key_steps;
  std::int64_t value_steps;
  std::int64_t score_stride;  // between the rows of a tile
  std::int64_t rows;          // queries per tile
};

template <typename Dot>
Shape shape_of(std::int64_t keys, std::int64_t width) {
  Shape shape{};
  shape.keys = keys;
  shape.width = width;
  shape.padded_keys = round_up(keys, panel_columns);
  shape.padded_width = round_up(width, panel_columns);
  shape.key_steps = Dot::steps(width);
  shape.padded_key_steps = round_up(shape.key_steps, 4);
  shape.value_steps = Dot::steps(keys);
  // One cache line more: rows a power of two apart would fall into the same few sets of the cache.
  shape.score_stride = shape.padded_keys + 16;
  const std::int64_t fitting = tile_bytes / (shape.score_stride * static_cast<std::int64_t>(sizeof(float)));
  shape.rows = fitting > most_rows     ? most_rows
               : fitting < fewest_rows ? fewest_rows
                                       : fitting / register_rows * register_rows;
  return shape;
}

// Room for one head, and for one tile of its queries.
template <typename Dot>
struct Workspace {
  using Element = typename Dot::Element;
  Element* keys;           // [panel][padded_key_steps][panel_columns]
  Element* values;         // [panel][value_steps][panel_columns]
  Element* row;            // for packing
  float* keep;             // [padded_keys] 1 or 0
  std::int32_t* removed;   // positions of the removed keys
  float* ranked;           // [keys] the values of a list in the making
  Element* queries;        // [rows, padded_key_steps]
  float* scores;           // [rows, score_stride]: scores, then e^(s - max)
  Element* probabilities;  // [rows, score_stride / 2] the same in pairs; unused with FloatDot
  float* maxima;           // [rows] vectors
  float* out;              // [rows, padded_width]
};

// Hands out aligned pieces of the caller's memory, or counts them where there is none.
struct Carver {
  char* memory;
  std::size_t used = 0;
  template <typename Element>
  Element* take(std::int64_t count) {
    Element* piece = memory == nullptr ? nullptr : reinterpret_cast<Element*>(memory + used);
    used += static_cast<std::size_t>(round_up(count * static_cast<std::int64_t>(sizeof(Element)), 64));
    return piece;
  }
};

template <typename Dot>
Workspace<Dot> carve(const Shape& shape, Carver& carver) {
  using Element = typename Dot::Element;
  const std::int64_t longest_row =
      4 * shape.padded_key_steps > shape.padded_width ? 4 * shape.padded_key_steps : shape.padded_width;
  Workspace<Dot> work;
  work.keys = carver.take<Element>(shape.padded_keys * shape.padded_key_steps);
  work.values = carver.take<Element>(shape.padded_width * shape.value_steps);
  work.row = carver.take<Element>(longest_row);
  work.keep = carver.take<float>(shape.padded_keys);
  work.removed = carver.take<std::int32_t>(shape.keys);
  work.ranked = carver.take<float>(shape.keys);
  work.queries = carver.take<Element>(shape.rows * shape.padded_key_steps);
  work.scores = carver.take<float>(shape.rows * shape.score_stride);
  work.probabilities = carver.take<Element>(Dot::pairs ? shape.rows * shape.score_stride / 2 : 0);
  work.maxima = carver.take<float>(shape.rows * vector_lanes);
  work.out = carver.take<float>(shape.rows * shape.padded_width);
  return work;
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
