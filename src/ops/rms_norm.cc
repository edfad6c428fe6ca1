#include "ops/rms_norm.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>

namespace sinkscope {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& weight, double eps) {
  const at::Tensor wide = x.to(at::kFloat);
  const at::Tensor scale = at::rsqrt(at::mean(wide * wide, {-1}, /*keepdim=*/true) + eps);
  return (wide * scale).to(x.scalar_type()) * weight;
}

}  // namespace sinkscope
