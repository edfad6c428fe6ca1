#include "ops/row_plan.h"

#include <algorithm>

namespace sinkscope {
namespace {

// Rows that share a slice of the weight: enough to pay for widening it, few enough to keep many threads busy.
constexpr std::int64_t rows_per_group = 1024;
// Pieces of one sequence are equally long up to this granule, a multiple of any product kernel's rows.
constexpr std::int64_t row_granule = 48;

}  // namespace

RowPlan plan_rows(std::span<const std::int64_t> offsets) {
  RowPlan plan;
  std::int64_t in_group = 0;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t length = offsets[s + 1] - offsets[s];
    const std::int64_t count = (length + most_rows_of_a_piece - 1) / most_rows_of_a_piece;
    if (count == 0) continue;
    const std::int64_t even = (length + count - 1) / count;
    const std::int64_t step =
        std::min((even + row_granule - 1) / row_granule * row_granule, most_rows_of_a_piece);
    for (std::int64_t begin = 0; begin < length; begin += step) {
      const std::int64_t rows = std::min(step, length - begin);
      plan.pieces.push_back({offsets[s] + begin, rows});
      in_group += rows;
      if (in_group < rows_per_group) continue;
      plan.groups.push_back(static_cast<std::int64_t>(plan.pieces.size()));
      in_group = 0;
    }
  }
  if (in_group > 0) plan.groups.push_back(static_cast<std::int64_t>(plan.pieces.size()));
  plan.rows = offsets.empty() ? 0 : offsets.back();
  return plan;
}

}  // namespace sinkscope
