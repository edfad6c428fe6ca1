// The passes over rows of scores: exponentials with their sums, and column sums. Part of
// attention_kernels.cc, once per instruction set.
#pragma once

#include "ops/attention_product.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

struct RowSums {
  float all;       // sum of e
  float kept;      // of e over the kept keys
  float weighted;  // of e log2(e)
};

// scores [keys, a multiple of the lanes] become e = 2^(factor (s - max)), 0 for those far below.
template <bool with_kept, bool with_weighted>
RowSums exponentials(float* scores, std::int64_t keys, float max, float factor, const float* keep) {
  Vector all{}, kept{}, weighted{};
  for (std::int64_t j = 0; j < keys; j += vector_lanes) {
    const Vector t = larger(broadcast(lowest_power), (load_vector<Vector>(scores + j) - max) * factor);
    const Vector e = power_of_two(t);
    store_vector(scores + j, e);
    all += e;
    if constexpr (with_kept) kept += e * load_vector<Vector>(keep + j);
    if constexpr (with_weighted) weighted += e * t;
  }
  return {sum_lanes(all), sum_lanes(kept), sum_lanes(weighted)};
}

// columns [keys] += weight[r] row[r]
template <int rows>
void add_rows(const float* const* row, const float* weight, std::int64_t keys, float* columns) {
  std::int64_t j = 0;
  for (; j + vector_lanes <= keys; j += vector_lanes) {
    Vector sum = load_vector<Vector>(row[0] + j) * weight[0];
#pragma GCC unroll 16
    for (int r = 1; r < rows; ++r) sum += load_vector<Vector>(row[r] + j) * weight[r];
    store_vector(columns + j, load_vector<Vector>(columns + j) + sum);
  }
  for (; j < keys; ++j) {
    float sum = row[0][j] * weight[0];
    for (int r = 1; r < rows; ++r) sum += row[r][j] * weight[r];
    columns[j] += sum;
  }
}

// Sum of values [keys, a multiple of the lanes].
inline float sum_row(const float* values, std::int64_t keys) {
  Vector sum{};
  for (std::int64_t j = 0; j < keys; j += vector_lanes) sum += load_vector<Vector>(values + j);
  return sum_lanes(sum);
}

inline bool any_above(Vector values, float bound) {
  const auto above = values > broadcast(bound);
  std::uint64_t parts[vector_bytes / 8];
  __builtin_memcpy(parts, &above, sizeof above);
  std::uint64_t any = 0;
  for (const std::uint64_t part : parts) any |= part;
  return any != 0;
}

// A list of keys by value, in the making; before(a, b): a stands in front of b. Of equal ones the first that
// came stays in front.
struct KeyList {
  std::int32_t* keys;
  float* values;
  std::int64_t room;
  std::int64_t count = 0;

  template <typename Before>
  void insert(std::int32_t key, float value, Before before) {
    std::int64_t place = count < room ? count++ : room - 1;
    for (; place > 0 && before(value, values[place - 1]); --place) {
      values[place] = values[place - 1];
      keys[place] = keys[place - 1];
    }
    values[place] = value;
    keys[place] = key;
  }
  void finish() {
    for (std::int64_t i = count; i < room; ++i) keys[i] = -1;
  }
};

constexpr int list_vectors = 4;  // of a row, looked at together
constexpr int list_lanes = list_vectors * vector_lanes;

inline int count_above(const Vector* values, float bound) {
  auto above = values[0] > broadcast(bound);
  for (int v = 1; v < list_vectors; ++v) above += values[v] > broadcast(bound);
  std::int32_t lanes[vector_lanes];
  __builtin_memcpy(lanes, &above, sizeof lanes);
  int count = 0;
  for (const std::int32_t lane : lanes) count -= lane;
  return count;
}

// A bound at least as high as `bound` >= 0 that `wanted` values of the row exceed, where a quick look finds
// one: the maxima of list_lanes parts of the row are values of it, so that what `wanted` of them exceed will
// do. Found by halving the interval of their bit patterns, which is about that of their logarithms.
inline float raised_bound(const float* row, std::int64_t keys, float bound, std::int64_t wanted) {
  if (!(bound >= 0) || keys < 4 * list_lanes || wanted > list_lanes) return bound;
  Vector largest[list_vectors] = {};
  for (std::int64_t j = 0; j + list_lanes <= keys; j += list_lanes)
    for (int v = 0; v < list_vectors; ++v)
      largest[v] = larger(load_vector<Vector>(row + j + v * vector_lanes), largest[v]);
  if (count_above(largest, bound) < wanted) return bound;
  std::uint32_t low, high;
  const float top = largest_lane(larger(larger(largest[0], largest[1]), larger(largest[2], largest[3])));
  __builtin_memcpy(&low, &bound, sizeof low);
  __builtin_memcpy(&high, &top, sizeof high);
  for (int halving = 0; halving < 8; ++halving) {
    const std::uint32_t middle = low + (high - low) / 2;
    float value;
    __builtin_memcpy(&value, &middle, sizeof value);
    (count_above(largest, value) < wanted ? high : low) = middle;
  }
  __builtin_memcpy(&bound, &low, sizeof bound);
  return bound;
}

// The largest of row [keys, padded to whole vectors] that exceed `bound`, of those that may(key), which
// refuses `refused` keys at most.
template <typename May>
void list_largest(const float* row, std::int64_t keys, float bound, KeyList list, std::int64_t refused,
                  May may) {
  bound = raised_bound(row, keys, bound, list.room + refused);
  const auto look_at = [&](std::int64_t begin) {
    if (!any_above(load_vector<Vector>(row + begin), bound)) return;
    for (std::int64_t j = begin; j < begin + vector_lanes && j < keys; ++j) {
      if (!(row[j] > bound) || !may(j)) continue;
      list.insert(static_cast<std::int32_t>(j), row[j], [](float a, float b) { return a > b; });
      if (list.count == list.room) bound = list.values[list.room - 1];
    }
  };
  std::int64_t begin = 0;
  for (; begin + list_lanes <= keys; begin += list_lanes) {
    Vector largest = load_vector<Vector>(row + begin);
    for (int v = 1; v < list_vectors; ++v)
      largest = larger(largest, load_vector<Vector>(row + begin + v * vector_lanes));
    if (any_above(largest, bound))
      for (int v = 0; v < list_vectors; ++v) look_at(begin + v * vector_lanes);
  }
  for (; begin < keys; begin += vector_lanes) look_at(begin);
  list.finish();
}

// The smallest of row [keys], of those that may(key).
template <typename May>
void list_smallest(const float* row, std::int64_t keys, KeyList list, May may) {
  for (std::int64_t j = 0; j < keys; ++j) {
    const bool full = list.count == list.room;
    if ((full && !(row[j] < list.values[list.room - 1])) || !may(j)) continue;
    list.insert(static_cast<std::int32_t>(j), row[j], [](float a, float b) { return a < b; });
  }
  list.finish();
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
