#include "ops/differentiable/swiglu.h"

#include <ATen/ops/silu.h>
#include <torch/csrc/autograd/custom_function.h>

#include "ops/differentiable/factors.h"
#include "ops/differentiable/training_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t piece_values = 1 << 14;

class SwigluFunction : public torch::autograd::Function<SwigluFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& gate, const at::Tensor& up) {
    const at::Tensor gates = contiguous_floats(gate, "swiglu: gate"),
                     ups = contiguous_floats(up, "swiglu: up");
    at::Tensor y = empty_tensor<float>(gate.sizes());
    parallel_rows(y.numel(), piece_values, [&](std::int64_t begin, std::int64_t end) {
      training_kernels().swiglu(storage_of<float>(gates) + begin, storage_of<float>(ups) + begin,
                                storage_of<float>(y) + begin, end - begin);
    });
    context->save_for_backward({gates, ups});
    return y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor dy = contiguous_floats(gradient[0], "swiglu: gradient");
    at::Tensor dgate = empty_tensor<float>(dy.sizes()), dup = empty_tensor<float>(dy.sizes());
    parallel_rows(dy.numel(), piece_values, [&](std::int64_t begin, std::int64_t end) {
      training_kernels().swiglu_gradient(storage_of<float>(saved[0]) + begin,
                                         storage_of<float>(saved[1]) + begin, storage_of<float>(dy) + begin,
                                         storage_of<float>(dgate) + begin, storage_of<float>(dup) + begin,
                                         end - begin);
    });
    return {dgate, dup};
  }
};

}  // namespace

at::Tensor swiglu(Backend backend, const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes(), "swiglu: gate ", gate.sizes(), " and up ", up.sizes());
  return backend == Backend::cpu ? SwigluFunction::apply(gate, up) : at::silu(gate) * up;
}

}  // namespace sinkscope
