#include "ops/rope.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/where.h>

namespace sinkscope {
namespace {

constexpr double pi = 3.14159265358979323846;

at::Tensor stretched(const at::Tensor& frequency, const Llama3Scaling& scaling) {
  const at::Tensor wavelength = 2 * pi / frequency;
  const double n = scaling.original_positions;
  const at::Tensor slow = frequency / scaling.factor;
  const at::Tensor share = (n / wavelength - scaling.low_frequency_factor) /
                           (scaling.high_frequency_factor - scaling.low_frequency_factor);
  const at::Tensor between = (1 - share) * slow + share * frequency;
  const at::Tensor result = at::where(wavelength > n / scaling.low_frequency_factor, slow, between);
  return at::where(wavelength < n / scaling.high_frequency_factor, frequency, result);
}

}  // namespace

RopeTable rope_table(std::int64_t positions, const RopeOptions& options, const at::Device& device) {
  const auto floats = at::TensorOptions(at::kFloat);
  const at::Tensor exponents =
      at::arange(0, options.head_dim, 2, floats) / static_cast<double>(options.head_dim);
  at::Tensor frequencies = 1.0 / at::pow(at::Scalar(options.theta), exponents);
  if (options.factor != 1) frequencies = frequencies / options.factor;
  if (options.llama3) frequencies = stretched(frequencies, *options.llama3);
  const at::Tensor angles = at::outer(at::arange(positions, floats), frequencies);
  const auto rounded = [&](const at::Tensor& t) {
    return t.to(options.arithmetic).to(at::kFloat).to(device);
  };
  return {rounded(at::cos(angles)), rounded(at::sin(angles)), options.arithmetic};
}

at::Tensor apply_rope(const at::Tensor& x, const RopeTable& table, const at::Tensor& positions) {
  const std::int64_t half = x.size(2) / 2;
  const at::Tensor index = positions.to(x.device());
  const auto of_tokens = [&](const at::Tensor& t) {
    return at::index_select(t, 0, index).unsqueeze(1).to(table.arithmetic);
  };
  const at::Tensor cosine = of_tokens(table.cosine);
  const at::Tensor sine = of_tokens(table.sine);
  const at::Tensor first = x.narrow(2, 0, half).to(table.arithmetic);
  const at::Tensor second = x.narrow(2, half, half).to(table.arithmetic);
  return at::cat(at::TensorList{first * cosine - second * sine, second * cosine + first * sine}, 2)
      .to(x.scalar_type());
}

}  // namespace sinkscope
