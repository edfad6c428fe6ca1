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

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
