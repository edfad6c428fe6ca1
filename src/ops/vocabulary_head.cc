#include "ops/vocabulary_head.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/amin.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/where.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/parallel.h"
#include "ops/projection.h"

namespace sinkscope {
namespace {

constexpr float nothing = -std::numeric_limits<float>::infinity();

// What a run of ids contributes to a row.
struct Part {
  VocabularyRow all;     // forbidden ones left out
  VocabularyRow shared;  // excluded ones left out, too
};

VocabularyRow join(const VocabularyRow& a, const VocabularyRow& b) {
  const bool second = b.max > a.max;  // on ties the first, which has the lower ids
  const VocabularyRow& larger = second ? b : a;
  const VocabularyRow& smaller = second ? a : b;
  if (smaller.max == nothing && !std::isnan(smaller.sum_exp)) return larger;
  const double shrink = std::exp(static_cast<double>(smaller.max) - static_cast<double>(larger.max));
  return {larger.argmax, larger.max, larger.sum_exp + smaller.sum_exp * shrink};
}

void join_in_place(Part& a, const Part& b) {
  a.all = join(a.all, b.all);
  a.shared = join(a.shared, b.shared);
}

void drop(std::vector<float>& logits, const std::vector<std::int32_t>& ids, std::int64_t first) {
  for (const std::int64_t id : ids)
    if (id >= first && id < first + static_cast<std::int64_t>(logits.size()))
      logits[static_cast<std::size_t>(id - first)] = nothing;
}

bool any_in(const std::vector<std::int32_t>& ids, std::int64_t first, std::int64_t count) {
  return std::any_of(ids.begin(), ids.end(),
                     [&](std::int64_t id) { return id >= first && id < first + count; });
}

// logits: those of the ids from `first` on; changed.
Part part_of(std::vector<float>& logits, std::int64_t first, const VocabularyOptions& options) {
  const auto count = static_cast<std::int64_t>(logits.size());
  const auto summary = [&] {
    VocabularyRow row = cpu_kernels().vocabulary_row(logits.data(), count, options.in_float64);
    row.argmax += first;
    return row;
  };
  drop(logits, options.forbidden, first);
  Part part{summary(), {}};
  part.shared = part.all;
  if (any_in(options.excluded, first, count)) {
    drop(logits, options.excluded, first);
    part.shared = summary();
  }
  return part;
}

// Slices are joined to runs, so that there is one part for each row and run.
constexpr std::int64_t most_runs = 64;

struct Runs {
  std::int64_t slices_each = 1;
  std::int64_t count = 1;
};

Runs runs_of(const Linear& head) {
  const std::int64_t each = (head.slice_count() + most_runs - 1) / most_runs;
  return {each, (head.slice_count() + each - 1) / each};
}

struct HeadScratch {
  SliceScratch slice;
  AlignedBuffer conditional;
  AlignedBuffer unconditional;
  std::vector<float> row;
};

// One slice times one piece (and its unconditional twin), joined into the parts of the piece's rows.
template <typename T>
void reduce_piece(const Linear& head, std::int64_t slice, const void* weight, const ProductInput& x,
                  RowPiece piece, const RowPiece* twin, const VocabularyOptions& options,
                  HeadScratch& scratch, Part* parts) {
  const auto& kernels = storage_kernels<T>(cpu_kernels());
  const std::int64_t width = head.slice_width(slice);
  const auto most = static_cast<std::size_t>(most_rows_of_a_piece * width);
  T* logits = scratch.conditional.get<T>(most);
  head.multiply(slice, weight, x, piece, logits, width, scratch.slice);
  if (twin != nullptr) {
    T* other = scratch.unconditional.get<T>(most);
    head.multiply(slice, weight, x, *twin, other, width, scratch.slice);
    kernels.guide(logits, other, static_cast<float>(options.guidance + 1), logits, piece.rows * width);
  }
  for (std::int64_t row = 0; row < piece.rows; ++row) {
    scratch.row.resize(static_cast<std::size_t>(width));
    kernels.widen(logits + row * width, scratch.row.data(), width);
    join_in_place(parts[piece.begin + row], part_of(scratch.row, head.slice_begin(slice), options));
  }
}

// The rows that have a result: the first half of the pieces with guidance, else all.
RowPlan conditional_half(const RowPlan& rows, bool guided) {
  if (!guided) return rows;
  std::vector<std::int64_t> offsets{0};
  const std::size_t half = rows.pieces.size() / 2;
  for (std::size_t p = 0; p < half; ++p) offsets.push_back(rows.pieces[p].begin + rows.pieces[p].rows);
  return plan_rows(offsets);
}

void set_row(VocabularyRows& rows, std::size_t row, const Part& part, const VocabularyOptions& options) {
  const auto token = static_cast<std::int32_t>(part.all.argmax);
  const bool excluded =
      std::find(options.excluded.begin(), options.excluded.end(), token) != options.excluded.end();
  rows.token[row] = token;
  rows.logit[row] = excluded ? nothing : part.all.max;
  rows.max[row] = part.shared.max;
  rows.sum_exp[row] = part.shared.sum_exp;
}

VocabularyRows empty_rows(std::int64_t count) {
  const auto size = static_cast<std::size_t>(count);
  return {std::vector<std::int32_t>(size, -1), std::vector<float>(size), std::vector<float>(size),
          std::vector<double>(size)};
}

// In libtorch's operations, on the device: the plain version.
VocabularyRows reduce_logits(at::Tensor logits, const VocabularyOptions& options) {
  if (options.guidance > 0) {
    const std::int64_t half = logits.size(0) / 2;
    logits = guided_logits(logits.narrow(0, 0, half), logits.narrow(0, half, half), options.guidance);
  }
  logits = logits.to(at::kFloat);
  for (const std::int64_t id : options.forbidden)
    if (id < logits.size(1)) logits.select(1, id).fill_(nothing);
  const std::int64_t count = logits.size(0);
  VocabularyRows rows = empty_rows(count);
  if (count == 0) return rows;
  const at::Tensor ids = at::arange(logits.size(1), logits.options().dtype(at::kLong));
  const at::Tensor best = at::amax(logits, {1}, /*keepdim=*/true);
  const at::Tensor is_best = logits == best;
  at::Tensor token = at::amin(at::where(is_best, ids, logits.size(1) - 1), {1});
  for (const std::int64_t id : options.excluded)
    if (id < logits.size(1)) logits.select(1, id).fill_(nothing);
  const at::Tensor logit = at::gather(logits, 1, token.unsqueeze(1)).squeeze(1).cpu();
  const at::Tensor max = at::amax(logits, {1}, /*keepdim=*/true);
  const at::Tensor shifted = options.in_float64 ? logits.to(at::kDouble) - max : logits - max;
  const at::Tensor sum = at::exp(shifted).sum(1).to(at::kCPU, at::kDouble);
  const at::Tensor max_here = max.squeeze(1).cpu();
  token = token.cpu();
  for (std::int64_t r = 0; r < count; ++r) {
    rows.token[r] = static_cast<std::int32_t>(token.data_ptr<std::int64_t>()[r]);
    rows.logit[r] = logit.data_ptr<float>()[r];
    rows.max[r] = max_here.data_ptr<float>()[r];
    rows.sum_exp[r] = sum.data_ptr<double>()[r];
  }
  return rows;
}

}  // namespace

VocabularyRows vocabulary_head(const Linear& head, const ProductInput& x, const RowPlan& rows,
                               const VocabularyOptions& options) {
  if (head.backend() == Backend::aten) return reduce_logits(at::linear(x.values, head.weight()), options);
  const bool guided = options.guidance > 0;
  const RowPlan plan = conditional_half(rows, guided);
  const Runs runs = runs_of(head);
  const Part none{{0, nothing, 0}, {0, nothing, 0}};
  std::vector<Part> parts(static_cast<std::size_t>(runs.count * plan.rows), none);
  parallel_for(runs.count * plan.group_count(), [&](std::int64_t task) {
    thread_local HeadScratch scratch;
    const std::int64_t run = task / plan.group_count();
    const std::int64_t group = task % plan.group_count();
    const std::int64_t end = std::min((run + 1) * runs.slices_each, head.slice_count());
    for (std::int64_t slice = run * runs.slices_each; slice < end; ++slice) {
      const void* weight = head.slice_weight(slice, scratch.slice);
      for (const RowPiece& piece : plan.group(group)) {
        const RowPiece twin{piece.begin + plan.rows, piece.rows};
        with_storage(head.dtype(), [&](auto* type) {
          reduce_piece<std::remove_pointer_t<decltype(type)>>(head, slice, weight, x, piece,
                                                              guided ? &twin : nullptr, options, scratch,
                                                              parts.data() + run * plan.rows);
        });
      }
    }
  });
  VocabularyRows result = empty_rows(plan.rows);
  for (std::int64_t row = 0; row < plan.rows; ++row) {
    Part whole = none;
    for (std::int64_t run = 0; run < runs.count; ++run) join_in_place(whole, parts[run * plan.rows + row]);
    set_row(result, static_cast<std::size_t>(row), whole, options);
  }
  return result;
}

at::Tensor guided_logits(const at::Tensor& conditional, const at::Tensor& unconditional, double guidance) {
  return unconditional + (conditional - unconditional) * (guidance + 1);
}

std::int64_t head_parts_bytes(std::int64_t rows) {
  return most_runs * rows * static_cast<std::int64_t>(sizeof(Part));
}

at::Tensor vocabulary_logits(const Linear& head, const ProductInput& x, const RowPlan& rows) {
  at::Tensor logits;
  if (head.backend() == Backend::cpu)
    logits = at::empty({rows.rows, head.out_features()}, at::TensorOptions(head.dtype()));
  project({{&head, &logits}}, x, rows);
  return logits;
}

}  // namespace sinkscope
