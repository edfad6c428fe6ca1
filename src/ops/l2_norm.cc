#include "ops/l2_norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>

#include "ops/parallel.h"

namespace sinkscope {

at::Tensor l2_norm(Backend backend, const at::Tensor& x) {
  if (backend == Backend::aten) return at::linalg_vector_norm(x.to(at::kFloat), 2, at::IntArrayRef{-1}).cpu();
  const std::int64_t width = x.size(-1);
  at::Tensor result = at::empty(x.sizes().slice(0, x.dim() - 1), at::TensorOptions(at::kFloat));
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_rows(result.numel(), 64, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        result.data_ptr<float>()[row] =
            storage_kernels<T>(cpu_kernels()).norm(storage_of<T>(x) + row * width, width);
    });
  });
  return result;
}

}  // namespace sinkscope
