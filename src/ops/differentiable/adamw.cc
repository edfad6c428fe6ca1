#include "ops/differentiable/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/sum.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/differentiable/training_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr std::int64_t piece_values = 1 << 16;

// A run of values of one tensor that one thread takes.
struct Piece {
  std::size_t tensor;
  std::int64_t begin, count;
};

void cut(std::size_t tensor, std::int64_t values, std::vector<Piece>& pieces) {
  for (std::int64_t begin = 0; begin < values; begin += piece_values)
    pieces.push_back({tensor, begin, std::min(piece_values, values - begin)});
}

void check(const AdamwParameter& p) {
  for (const at::Tensor* tensor : {&p.gradient, &p.first_moment, &p.second_moment})
    TORCH_CHECK(tensor->sizes() == p.parameter.sizes(), "adamw_step: ", tensor->sizes(), " for a parameter ",
                p.parameter.sizes());
}

void check_memory(const at::Tensor& tensor) {
  TORCH_CHECK(tensor.is_cpu() && tensor.is_contiguous() && tensor.scalar_type() == at::kFloat,
              "adamw_step: ", tensor.toString(), " with strides ", tensor.strides(),
              "; the CPU kernel takes contiguous float32");
}

struct Corrections {
  double first, second;
};
Corrections corrections(const AdamwOptions& options) {
  const auto t = static_cast<double>(options.step);
  return {1 - std::pow(options.beta1, t), 1 - std::pow(options.beta2, t)};
}

AdamwCoefficients coefficients(const AdamwOptions& options, double weight_decay) {
  const Corrections correction = corrections(options);
  return {static_cast<float>(options.beta1),
          static_cast<float>(options.beta2),
          static_cast<float>(options.eps),
          static_cast<float>(1 - options.learning_rate * weight_decay),
          static_cast<float>(options.learning_rate / correction.first),
          static_cast<float>(1 / std::sqrt(correction.second)),
          static_cast<float>(options.gradient_scale)};
}

void step_aten(const AdamwParameter& p, const AdamwOptions& options) {
  const Corrections correction = corrections(options);
  const at::Tensor gradient = p.gradient * options.gradient_scale;
  p.first_moment.mul_(options.beta1).add_(gradient, 1 - options.beta1);
  p.second_moment.mul_(options.beta2).addcmul_(gradient, gradient, 1 - options.beta2);
  const at::Tensor root = at::sqrt(p.second_moment / correction.second) + options.eps;
  p.parameter.mul_(1 - options.learning_rate * p.weight_decay)
      .addcdiv_(p.first_moment, root, -options.learning_rate / correction.first);
}

}  // namespace

void adamw_step(Backend backend, std::span<const AdamwParameter> parameters, const AdamwOptions& options) {
  const at::NoGradGuard no_gradients;
  std::vector<Piece> pieces;
  std::vector<at::Tensor> gradients(parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const AdamwParameter& p = parameters[i];
    if (!p.gradient.defined()) continue;
    check(p);
    if (backend == Backend::aten) {
      step_aten(p, options);
      continue;
    }
    gradients[i] = p.gradient.contiguous();
    for (const at::Tensor& tensor : {gradients[i], p.parameter, p.first_moment, p.second_moment})
      check_memory(tensor);
    cut(i, p.parameter.numel(), pieces);
  }
  parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t index) {
    const auto [tensor, begin, count] = pieces[index];
    const AdamwParameter& p = parameters[tensor];
    training_kernels().adamw(
        coefficients(options, p.weight_decay), storage_of<float>(gradients[tensor]) + begin,
        storage_of<float>(p.parameter) + begin, storage_of<float>(p.first_moment) + begin,
        storage_of<float>(p.second_moment) + begin, count);
  });
}

double gradient_norm(Backend backend, at::TensorList gradients) {
  double sum = 0;
  std::vector<Piece> pieces;
  std::vector<at::Tensor> contiguous(gradients.size());
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (!gradients[i].defined()) continue;
    if (backend == Backend::aten) {
      const at::Tensor wide = gradients[i].to(at::kDouble);
      sum += at::sum(wide * wide).item<double>();
      continue;
    }
    contiguous[i] = gradients[i].contiguous();
    check_memory(contiguous[i]);
    cut(i, contiguous[i].numel(), pieces);
  }
  std::vector<double> squares(pieces.size());
  parallel_for(static_cast<std::int64_t>(pieces.size()), [&](std::int64_t index) {
    const auto [tensor, begin, count] = pieces[index];
    squares[index] = training_kernels().sum_of_squares(storage_of<float>(contiguous[tensor]) + begin, count);
  });
  for (const double square : squares) sum += square;
  return std::sqrt(sum);
}

double clipping_scale(double norm, double largest) { return std::min(1.0, largest / (norm + 1e-6)); }

}  // namespace sinkscope
