#include "ops/differentiable/rms_norm.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/differentiable/factors.h"
#include "ops/differentiable/row_sums.h"
#include "ops/differentiable/training_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t piece_rows = 64;

// x, update, sum and y [rows, width]; scale [rows], the factor of each row. update may be undefined.
void normalise(const at::Tensor& x, const at::Tensor& update, const at::Tensor& weight, double eps,
               const at::Tensor& sum, const at::Tensor& y, const at::Tensor& scale) {
  const std::int64_t width = weight.size(0);
  const float* added = update.defined() ? storage_of<float>(update) : nullptr;
  float* total = update.defined() ? storage_of<float>(sum) : nullptr;
  parallel_rows(scale.numel(), piece_rows, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * width;
      storage_of<float>(scale)[row] = training_kernels().rms_norm(
          storage_of<float>(x) + at, added == nullptr ? nullptr : added + at, storage_of<float>(weight),
          static_cast<float>(eps), total == nullptr ? nullptr : total + at, storage_of<float>(y) + at, width);
    }
  });
}

struct NormGradients {
  at::Tensor x, weight;
};

// x: what was normalised. dsum may be undefined.
NormGradients norm_gradients(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& scale,
                             const at::Tensor& dy, const at::Tensor& dsum) {
  const std::int64_t width = weight.size(0), rows = scale.numel();
  const std::int64_t pieces = (rows + piece_rows - 1) / piece_rows;
  at::Tensor dx = empty_tensor<float>(x.sizes());
  const at::Tensor partial = at::zeros({pieces, width}, dx.options());
  const float* more = dsum.defined() ? storage_of<float>(dsum) : nullptr;
  parallel_rows(rows, piece_rows, [&](std::int64_t begin, std::int64_t end) {
    float* dweight = storage_of<float>(partial) + begin / piece_rows * width;
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = row * width;
      training_kernels().rms_norm_gradient(storage_of<float>(x) + at, storage_of<float>(weight),
                                           storage_of<float>(scale)[row], storage_of<float>(dy) + at,
                                           more == nullptr ? nullptr : more + at, storage_of<float>(dx) + at,
                                           dweight, width);
    }
  });
  return {dx, sum_of_rows(partial, pieces, width)};
}

// Inputs x, weight and, behind a residual connection, update.
class RmsNormFunction : public torch::autograd::Function<RmsNormFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight,
                            double eps) {
    const at::Tensor rows = contiguous_floats(x, "rms_norm: x");
    const at::Tensor factor = contiguous_floats(weight, "rms_norm: weight");
    at::Tensor y = empty_tensor<float>(x.sizes());
    const at::Tensor scale = empty_tensor<float>({x.numel() / weight.size(0)});
    normalise(rows, {}, factor, eps, {}, y, scale);
    context->save_for_backward({rows, factor, scale});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const variable_list saved = context->get_saved_variables();
    const NormGradients gradients =
        norm_gradients(saved[0], saved[1], saved[2], contiguous_floats(dy[0], "rms_norm: gradient"), {});
    return {gradients.x, gradients.weight, {}};
  }
};

class AddRmsNormFunction : public torch::autograd::Function<AddRmsNormFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& update,
                               const at::Tensor& weight, double eps) {
    const at::Tensor rows = contiguous_floats(x, "add_rms_norm: x");
    const at::Tensor added = contiguous_floats(update, "add_rms_norm: update");
    const at::Tensor factor = contiguous_floats(weight, "add_rms_norm: weight");
    at::Tensor sum = empty_tensor<float>(x.sizes()), y = empty_tensor<float>(x.sizes());
    const at::Tensor scale = empty_tensor<float>({x.numel() / weight.size(0)});
    normalise(rows, added, factor, eps, sum, y, scale);
    context->save_for_backward({sum, factor, scale});
    context->set_materialize_grads(false);
    return {sum, y};
  }

  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    if (!dy[1].defined()) return {dy[0], dy[0], {}, {}};
    const variable_list saved = context->get_saved_variables();
    const at::Tensor dsum =
        dy[0].defined() ? contiguous_floats(dy[0], "add_rms_norm: gradient") : at::Tensor();
    const NormGradients gradients = norm_gradients(saved[0], saved[1], saved[2],
                                                   contiguous_floats(dy[1], "add_rms_norm: gradient"), dsum);
    return {gradients.x, gradients.x, gradients.weight, {}};
  }
};

at::Tensor rms_norm_aten(const at::Tensor& x, const at::Tensor& weight, double eps) {
  return x * at::rsqrt(at::mean(x * x, {-1}, /*keepdim=*/true) + eps) * weight;
}

void check_shapes(const at::Tensor& x, const at::Tensor& weight) {
  TORCH_CHECK(weight.dim() == 1 && x.dim() >= 1 && x.size(-1) == weight.size(0) && weight.size(0) > 0,
              "rms_norm: weight ", weight.sizes(), " for x ", x.sizes());
}

}  // namespace

at::Tensor rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps) {
  check_shapes(x, weight);
  return backend == Backend::cpu ? RmsNormFunction::apply(x, weight, eps) : rms_norm_aten(x, weight, eps);
}

AddedNorm add_rms_norm(Backend backend, const at::Tensor& x, const at::Tensor& update,
                       const at::Tensor& weight, double eps) {
  check_shapes(x, weight);
  TORCH_CHECK(update.sizes() == x.sizes(), "add_rms_norm: update ", update.sizes(), " for x ", x.sizes());
  if (backend == Backend::cpu) {
    const variable_list results = AddRmsNormFunction::apply(x, update, weight, eps);
    return {results[0], results[1]};
  }
  const at::Tensor sum = x + update;
  return {sum, rms_norm_aten(sum, weight, eps)};
}

}  // namespace sinkscope
