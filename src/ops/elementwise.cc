#include "ops/elementwise.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/silu.h>

#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr std::int64_t values_per_piece = 1 << 14;

}  // namespace

at::Tensor silu_multiply(Backend backend, at::Tensor gate, const at::Tensor& up) {
  if (backend == Backend::aten) return at::silu(gate) * up;
  with_storage(gate.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(gate.numel(), values_per_piece, [&](std::int64_t begin, std::int64_t end) {
      storage_kernels<T>(cpu_kernels())
          .silu_multiply(storage_of<T>(gate) + begin, storage_of<T>(up) + begin, end - begin);
    });
  });
  return gate;
}

void add_in_place(Backend backend, at::Tensor& x, const at::Tensor& y) {
  if (backend == Backend::aten) {
    x.add_(y);
    return;
  }
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(x.numel(), values_per_piece, [&](std::int64_t begin, std::int64_t end) {
      storage_kernels<T>(cpu_kernels()).add(storage_of<T>(x) + begin, storage_of<T>(y) + begin, end - begin);
    });
  });
}

at::Tensor l2_norm(Backend backend, const at::Tensor& x) {
  if (backend == Backend::aten) return at::linalg_vector_norm(x.to(at::kFloat), 2, at::IntArrayRef{-1}).cpu();
  const std::int64_t width = x.size(-1);
  at::Tensor result = at::empty(x.sizes().slice(0, x.dim() - 1), at::TensorOptions(at::kFloat));
  const at::Tensor rows = x.contiguous();
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(result.numel(), 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        result.data_ptr<float>()[row] =
            storage_kernels<T>(cpu_kernels()).norm(storage_of<T>(rows) + row * width, width);
    });
  });
  return result;
}

}  // namespace sinkscope
