#include "ops/rms_norm.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/rsqrt.h>

#include "ops/parallel.h"

namespace sinkscope {

at::Tensor rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps) {
  if (backend == Backend::aten) {
    const at::Tensor wide = x.to(at::kFloat);
    const at::Tensor scale = at::rsqrt(at::mean(wide * wide, {-1}, /*keepdim=*/true) + eps);
    return (wide * scale).to(x.scalar_type()) * weight;
  }
  at::Tensor y = at::empty_like(x);
  const std::int64_t width = x.size(-1);
  with_storage(x.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    const auto& kernels = storage_kernels<T>(cpu_kernels());
    parallel_rows(x.numel() / width, 16, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row)
        kernels.rms_norm(storage_of<T>(x) + row * width, storage_of<T>(weight),
                         storage_of<T>(y) + row * width, width, static_cast<float>(eps));
    });
  });
  return y;
}

}  // namespace sinkscope
