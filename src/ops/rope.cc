#include "ops/rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>

namespace sinkscope {

RopeTable rope_table(std::int64_t positions, std::int64_t head_dim, double theta, const at::Device& device) {
  const auto options = at::TensorOptions(at::kFloat);
  const at::Tensor exponents = at::arange(0, head_dim, 2, options) / static_cast<double>(head_dim);
  const at::Tensor inverse_frequencies = 1.0 / at::pow(at::Scalar(theta), exponents);
  const at::Tensor angles = at::outer(at::arange(positions, options), inverse_frequencies);
  return {at::cos(angles).to(device), at::sin(angles).to(device)};
}

at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table, const at::Tensor& positions) {
  const std::int64_t half = x.size(2) / 2;
  const at::Tensor index = positions.to(x.device());
  const at::Tensor cosine = at::index_select(table.cosine, 0, index).unsqueeze(1);
  const at::Tensor sine = at::index_select(table.sine, 0, index).unsqueeze(1);
  const at::Tensor first = x.narrow(2, 0, half).to(at::kFloat);
  const at::Tensor second = x.narrow(2, half, half).to(at::kFloat);
  return at::cat(at::TensorList{first * cosine - second * sine, second * cosine + first * sine}, 2)
      .to(x.scalar_type());
}

}  // namespace sinkscope
