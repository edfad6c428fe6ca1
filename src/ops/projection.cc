#include "ops/projection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/silu.h>

#include "ops/parallel.h"
#include "ops/rms_norm.h"

namespace sinkscope {
namespace {

// Calls body(slice, group) for every slice of the weight and every group of rows, on all threads. Groups
// vary fastest: threads share the slice that is in the cache.
template <typename Body>
void for_each_slice(std::int64_t slices, const RowPlan& rows, Body body) {
  const std::int64_t groups = rows.group_count();
  parallel_for(slices * groups, [&](std::int64_t task) { body(task / groups, rows.group(task % groups)); });
}

template <typename T>
void rotate_piece(const Rotation& rotation, RowPiece piece, std::int64_t width, std::int64_t stride,
                  T* values) {
  const std::int64_t half = rotation.head_dim / 2;
  const auto* positions = rotation.positions->data_ptr<std::int64_t>();
  const StorageKernels<T>& kernels = storage_kernels<T>(cpu_kernels());
  const auto rotate = rotation.table->arithmetic == at::kFloat ? kernels.rotate : kernels.rotate_in_storage;
  for (std::int64_t row = 0; row < piece.rows; ++row) {
    const std::int64_t angle = positions[piece.begin + row] * half;
    rotate(values + row * stride, rotation.table->cosine.data_ptr<float>() + angle,
           rotation.table->sine.data_ptr<float>() + angle, width / rotation.head_dim, half);
  }
}

template <typename T>
void norm_heads(const HeadNorm& norm, std::int64_t rows, std::int64_t width, std::int64_t stride, T* values) {
  const std::int64_t head_dim = norm.weight->numel();
  for (std::int64_t row = 0; row < rows; ++row)
    for (T* head = values + row * stride; head < values + row * stride + width; head += head_dim)
      storage_kernels<T>(cpu_kernels())
          .rms_norm(head, storage_of<T>(*norm.weight), head, head_dim, static_cast<float>(norm.eps));
}

// values [rows] of the columns from `begin` on
template <typename T>
void add_bias(const at::Tensor& bias, std::int64_t begin, std::int64_t rows, std::int64_t width,
              std::int64_t stride, T* values) {
  for (std::int64_t row = 0; row < rows; ++row)
    storage_kernels<T>(cpu_kernels()).add(values + row * stride, storage_of<T>(bias) + begin, width);
}

void project_plainly(const std::vector<Projection>& projections, const ProductInput& x) {
  for (const Projection& p : projections) {
    *p.result = at::linear(x.values, p.linear->weight());
    if (p.bias != nullptr) p.result->add_(*p.bias);
    if (p.norm != nullptr)
      *p.result = rms_norm(p.result->view({p.result->size(0), -1, p.norm->weight->numel()}), *p.norm->weight,
                           p.norm->eps)
                      .reshape(p.result->sizes());
    if (p.rotation == nullptr) continue;
    const std::int64_t heads = p.linear->out_features() / p.rotation->head_dim;
    *p.result = apply_rope(p.result->view({-1, heads, p.rotation->head_dim}), *p.rotation->table,
                           *p.rotation->positions)
                    .reshape(p.result->sizes());
  }
}

struct Scratches {
  SliceScratch slice;
  SliceScratch second_slice;
  AlignedBuffer result;
  AlignedBuffer second_result;
};

Scratches& thread_scratches() {
  thread_local Scratches scratches;
  return scratches;
}

}  // namespace

void project(const std::vector<Projection>& projections, const ProductInput& x, const RowPlan& rows) {
  if (projections.front().linear->backend() == Backend::aten) return project_plainly(projections, x);
  std::int64_t slices = 0;
  for (const Projection& p : projections) slices += p.linear->slice_count();
  for_each_slice(slices, rows, [&](std::int64_t slice, std::span<const RowPiece> pieces) {
    auto p = projections.begin();
    for (; slice >= p->linear->slice_count(); ++p) slice -= p->linear->slice_count();
    SliceScratch& scratch = thread_scratches().slice;
    const void* weight = p->linear->slice_weight(slice, scratch);
    const std::int64_t stride = p->linear->out_features();
    with_storage(p->linear->dtype(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      for (const RowPiece& piece : pieces) {
        T* result = storage_of<T>(*p->result) + piece.begin * stride + p->linear->slice_begin(slice);
        const std::int64_t width = p->linear->slice_width(slice);
        p->linear->multiply(slice, weight, x, piece, result, stride, scratch);
        if (p->bias != nullptr)
          add_bias(*p->bias, p->linear->slice_begin(slice), piece.rows, width, stride, result);
        if (p->norm != nullptr) norm_heads(*p->norm, piece.rows, width, stride, result);
        if (p->rotation != nullptr) rotate_piece(*p->rotation, piece, width, stride, result);
      }
    });
  });
}

void project_add(const Linear& linear, const at::Tensor* bias, const ProductInput& x, const RowPlan& rows,
                 at::Tensor& residual) {
  if (linear.backend() == Backend::aten) {
    at::Tensor product = at::linear(x.values, linear.weight());
    if (bias != nullptr) product.add_(*bias);
    residual.add_(product);
    return;
  }
  for_each_slice(linear.slice_count(), rows, [&](std::int64_t slice, std::span<const RowPiece> pieces) {
    Scratches& scratches = thread_scratches();
    const void* weight = linear.slice_weight(slice, scratches.slice);
    const std::int64_t width = linear.slice_width(slice);
    with_storage(linear.dtype(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      for (const RowPiece& piece : pieces) {
        T* sum = scratches.result.get<T>(static_cast<std::size_t>(most_rows_of_a_piece * width));
        linear.multiply(slice, weight, x, piece, sum, width, scratches.slice);
        if (bias != nullptr) add_bias(*bias, linear.slice_begin(slice), piece.rows, width, width, sum);
        T* to = storage_of<T>(residual) + piece.begin * linear.out_features() + linear.slice_begin(slice);
        for (std::int64_t row = 0; row < piece.rows; ++row)
          storage_kernels<T>(cpu_kernels()).add(to + row * linear.out_features(), sum + row * width, width);
      }
    });
  });
}

void project_gated(const Linear& gate, const Linear& up, const ProductInput& x, const RowPlan& rows,
                   at::Tensor& result) {
  if (gate.backend() == Backend::aten) {
    result = at::silu(at::linear(x.values, gate.weight())) * at::linear(x.values, up.weight());
    return;
  }
  for_each_slice(gate.slice_count(), rows, [&](std::int64_t slice, std::span<const RowPiece> pieces) {
    Scratches& scratches = thread_scratches();
    const void* gate_weight = gate.slice_weight(slice, scratches.slice);
    const void* up_weight = up.slice_weight(slice, scratches.second_slice);
    const std::int64_t width = gate.slice_width(slice);
    const auto most = static_cast<std::size_t>(most_rows_of_a_piece * width);
    with_storage(gate.dtype(), [&](auto* type) {
      using T = std::remove_pointer_t<decltype(type)>;
      for (const RowPiece& piece : pieces) {
        T* gates = scratches.result.get<T>(most);
        T* ups = scratches.second_result.get<T>(most);
        gate.multiply(slice, gate_weight, x, piece, gates, width, scratches.slice);
        up.multiply(slice, up_weight, x, piece, ups, width, scratches.second_slice);
        T* to = storage_of<T>(result) + piece.begin * gate.out_features() + gate.slice_begin(slice);
        for (std::int64_t row = 0; row < piece.rows; ++row)
          storage_kernels<T>(cpu_kernels())
              .silu_multiply(gates + row * width, ups + row * width, to + row * gate.out_features(), width);
      }
    });
  });
}

}  // namespace sinkscope
