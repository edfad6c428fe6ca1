// Compiled once per instruction set (cmake/rooms.cmake), each time into namespace SINKSCOPE_KERNEL_LEVEL.
#include "ops/few_rows_kernels.h"

#include "ops/attention_product.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

constexpr int vectors = few_rows_panel / vector_lanes;
// Pairs of a panel that are read at a time for all rows; with so few vectors of sums they stay in registers.
constexpr int vectors_at_once = vectors < 4 ? vectors : 4;
// How far ahead of its use the weight is fetched: enough for a load from memory, little enough for the first
// cache.
constexpr std::int64_t pairs_ahead = 16;

inline std::uint32_t pair_at(const Bfloat16* x, std::int64_t pair) {
  std::uint32_t both;
  __builtin_memcpy(&both, x + 2 * pair, sizeof both);
  return both;
}

// Some columns of a panel: `columns` points to them in the panel's first pair.
template <int rows>
void multiply_columns(const Bfloat16* x, std::int64_t inner, const std::uint32_t* columns, float* sums,
                      std::int64_t stride) {
  Vector sum[rows][vectors_at_once] = {};
  const std::int64_t pairs = inner / 2;
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::uint32_t* at = columns + pair * few_rows_panel;
    Words weight[vectors_at_once];
#pragma GCC unroll 8
    for (int v = 0; v < vectors_at_once; ++v) {
      weight[v] = load_vector<Words>(at + v * vector_lanes);
      __builtin_prefetch(at + pairs_ahead * few_rows_panel + v * vector_lanes);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const std::uint32_t value = pair_at(x + r * inner, pair);
#pragma GCC unroll 8
      for (int v = 0; v < vectors_at_once; ++v) sum[r][v] = PairDot::add_product(sum[r][v], value, weight[v]);
    }
  }
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors_at_once; ++v) store_vector(sums + r * stride + v * vector_lanes, sum[r][v]);
}

void multiply_few_rows(const Bfloat16* x, std::int64_t rows, std::int64_t inner, const Bfloat16* weight,
                       std::int64_t panels, float* sums) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(weight);
  for (std::int64_t panel = 0; panel < panels; ++panel)
    for (std::int64_t column = 0; column < few_rows_panel; column += vectors_at_once * vector_lanes)
      with_row_count<most_few_rows>(rows, [&](auto count) {
        multiply_columns<decltype(count)::value>(
            x, inner, pairs + panel * few_rows_panel * (inner / 2) + column,
            sums + panel * few_rows_panel + column, panels * few_rows_panel);
      });
}

}  // namespace

FewRowsKernel few_rows_kernel() { return multiply_few_rows; }

}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
