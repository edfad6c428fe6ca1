// Rows of queries, keys and values from the storage type into the elements and panels of
// attention_product.h. Part of attention_kernels.cc, once per instruction set. Pairs are taken from memory as
// they lie, which puts the lower index into the lower half on every little-endian processor.
#pragma once

#include <cstddef>

#include "ops/attention_product.h"
#include "ops/kernel_values.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

inline std::uint32_t pair(Bfloat16 low, Bfloat16 high) {
  return static_cast<std::uint32_t>(high.bits) << 16 | low.bits;
}

// One row of `width` values as elements along the row.
template <typename T>
inline void convert_row(const T* from, std::int64_t width, float* to) {
  for (std::int64_t d = 0; d < width; ++d) to[d] = load(from + d);
}
inline void convert_row(const Bfloat16* from, std::int64_t width, std::uint32_t* to) {
  __builtin_memcpy(to, from, static_cast<std::size_t>(width) * sizeof *from);  // pairs as they lie
  if (width % 2 != 0) to[width / 2] = pair(from[width - 1], {0});
}

// e^(s - max) of one row, [keys, a multiple of the vectors], rounded to pairs.
inline void round_row(const float* from, std::int64_t keys, std::uint32_t* to) {
  constexpr int chunk = 2 * vector_lanes;
  for (std::int64_t j = 0; j < keys; j += chunk) {
    Bfloat16 rounded[chunk];
    for (int i = 0; i < chunk; ++i) store(rounded + i, from[j + i]);
    __builtin_memcpy(to + j / 2, rounded, sizeof rounded);
  }
}

// Four rows of 4 n elements into four neighbouring columns of a panel.
template <typename Element>
inline void transpose_four(const Element* rows, std::int64_t row_stride, std::int64_t steps, Element* panel) {
  for (std::int64_t step = 0; step < steps; step += 4) {
    const Quad a = load_vector<Quad>(rows + step), b = load_vector<Quad>(rows + row_stride + step);
    const Quad c = load_vector<Quad>(rows + 2 * row_stride + step);
    const Quad d = load_vector<Quad>(rows + 3 * row_stride + step);
    const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const Quad ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const Quad cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    Element* to = panel + step * panel_columns;
    store_vector(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
    store_vector(to + panel_columns, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
    store_vector(to + 2 * panel_columns, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
    store_vector(to + 3 * panel_columns, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
  }
}

// Keys [S, D] into panels [panel][padded steps][panel_columns] whose columns are keys; zeros behind the last
// key. padded_steps: the steps of D, rounded up to a multiple of four. rows: room for [4, padded_steps].
template <typename Dot, typename T>
void pack_keys(const T* k, std::int64_t stride, std::int64_t keys, std::int64_t width,
               std::int64_t padded_steps, typename Dot::Element* rows, typename Dot::Element* packed) {
  for (std::int64_t i = 0; i < 4 * padded_steps; ++i) rows[i] = {};
  for (std::int64_t first = 0; first < keys; first += panel_columns) {
    typename Dot::Element* panel = packed + first * padded_steps;
    for (std::int64_t column = 0; column < panel_columns; column += 4) {
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t key = first + column + i;
        typename Dot::Element* row = rows + i * padded_steps;
        if (key < keys)
          convert_row(k + key * stride, width, row);
        else
          for (std::int64_t step = 0; step < padded_steps; ++step) row[step] = {};
      }
      transpose_four(rows, padded_steps, padded_steps, panel + column);
    }
  }
}

// One step of values, all columns: a row in float32, or two rows interleaved.
template <typename T>
inline void convert_value_step(const T* v, std::int64_t stride, std::int64_t step, std::int64_t,
                               std::int64_t width, float* to) {
  convert_row(v + step * stride, width, to);
}
inline void convert_value_step(const Bfloat16* v, std::int64_t stride, std::int64_t step, std::int64_t keys,
                               std::int64_t width, std::uint32_t* to) {
  const Bfloat16* low = v + 2 * step * stride;
  if (2 * step + 1 < keys)
    for (std::int64_t d = 0; d < width; ++d) to[d] = pair(low[d], low[stride + d]);
  else
    for (std::int64_t d = 0; d < width; ++d) to[d] = pair(low[d], {0});
}

// Values [S, D] into panels [panel][steps][panel_columns] whose columns are the D values; zeros behind the
// last one. row: room for padded_width elements, the width rounded up to whole panels.
template <typename Dot, typename T>
void pack_values(const T* v, std::int64_t stride, std::int64_t keys, std::int64_t width,
                 std::int64_t padded_width, typename Dot::Element* row, typename Dot::Element* packed) {
  const std::int64_t steps = Dot::steps(keys);
  for (std::int64_t d = width; d < padded_width; ++d) row[d] = {};
  for (std::int64_t step = 0; step < steps; ++step) {
    convert_value_step(v, stride, step, keys, width, row);
    for (std::int64_t column = 0; column < padded_width; column += panel_columns)
      __builtin_memcpy(packed + column * steps + step * panel_columns, row + column,
                       panel_columns * sizeof *row);
  }
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
