#include "sampling/row_memory.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros_like.h>

namespace sinkscope {
namespace {

std::size_t cells_of(const RowStep& step) {
  return static_cast<std::size_t>(step.layers * step.heads * step.length());
}

std::span<const std::int32_t> values_of(const at::Tensor& lists) {
  if (!lists.defined()) return {};
  return {lists.data_ptr<std::int32_t>(), static_cast<std::size_t>(lists.numel())};
}

}  // namespace

std::int64_t choose_removed(RowMemory& row, const RowStep& step, const InterventionOptions& options,
                            RandomStream& control) {
  const std::size_t cells = cells_of(step);
  if (!row.columns.defined() || step.forgets) {
    row.removed.assign(cells, 0);
    return 0;
  }
  const StepScores scores{{row.columns.data_ptr<float>(), cells},
                          {row.diagonal.data_ptr<float>(), cells},
                          step.classes,
                          step.classes.size(),
                          static_cast<std::size_t>(step.heads),
                          step.number};
  RemovedKeys chosen = choose_removed_keys(scores, options, [&](std::int64_t count, std::int64_t wanted) {
    return control.permutation(count, wanted);
  });
  row.removed = std::move(chosen.removed);
  return chosen.missing;
}

std::int64_t choose_removed_for(RowMemory& row, const RowStep& step, const InterventionOptions& options,
                                RandomStream& control) {
  row.removed_for = {};
  row.removed_for.queries.assign(cells_of(step), 0);
  if (!row.most.defined() || step.forgets) return 0;
  const std::int64_t queries = step.last - step.first;
  const auto computed = [&](const at::Tensor& lists) {
    return lists.defined() ? lists.narrow(2, step.first, queries).contiguous() : lists;
  };
  const at::Tensor most = computed(row.most), least = computed(row.least);
  row.removed_for = choose_removed_row_keys(
      {values_of(most), values_of(least), step.classes, static_cast<std::size_t>(step.room),
       static_cast<std::size_t>(step.heads), static_cast<std::size_t>(queries),
       static_cast<std::size_t>(step.first), step.number},
      options, [&] { return control.next_double(); });
  return row.removed_for.missing;
}

void remember_last_row(RowMemory& row, std::int64_t first_key, std::int64_t length, const Observation& seen) {
  row.columns = (seen.last_row.narrow(2, first_key, length) * static_cast<double>(length)).contiguous();
  row.diagonal = at::zeros_like(row.columns);
  row.diagonal.select(2, length - 1).copy_(row.columns.select(2, length - 1));
}

void remember_lists(RowMemory& row, const RowStep& step, std::int64_t first_token, const Observation& seen) {
  const auto remember = [&](const at::Tensor& lists, at::Tensor& own) {
    if (!lists.defined()) return;
    if (!own.defined())
      own = at::full({lists.size(0), lists.size(1), step.length(), lists.size(3)}, no_key, lists.options());
    const std::int64_t queries = step.last - step.first;
    own.narrow(2, step.first, queries).copy_(lists.narrow(2, first_token, queries));
  };
  remember(seen.row_most, row.most);
  remember(seen.row_least, row.least);
}

}  // namespace sinkscope
