#include "ops/differentiable/rope.h"

#include <ATen/ops/cat.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <vector>

#include "ops/differentiable/factors.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// x [B, T, heads, 2 half]; cosine and sine [positions, half]
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cosine, const at::Tensor& sine) {
  at::Tensor y = empty_tensor<float>(x.sizes());
  const std::int64_t positions = x.size(1), heads = x.size(2), half = x.size(3) / 2;
  const std::int64_t width = heads * 2 * half;
  constexpr std::int64_t piece_tokens = 32;
  parallel_rows(x.size(0) * positions, piece_tokens, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t token = begin; token < end; ++token) {
      const std::int64_t angle = token % positions * half;
      const float* from = storage_of<float>(x) + token * width;
      float* to = storage_of<float>(y) + token * width;
      std::copy(from, from + width, to);
      cpu_kernels().f32.rotate(to, storage_of<float>(cosine) + angle, storage_of<float>(sine) + angle, heads,
                               half);
    }
  });
  return y;
}

class RopeFunction : public torch::autograd::Function<RopeFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& cosine,
                            const at::Tensor& sine) {
    context->save_for_backward({cosine, sine});
    return rotated(contiguous_floats(x, "rope: x"), contiguous_floats(cosine, "rope: cosine"),
                   contiguous_floats(sine, "rope: sine"));
  }

  static variable_list backward(AutogradContext* context, const variable_list& dy) {
    const variable_list saved = context->get_saved_variables();
    return {rotated(contiguous_floats(dy[0], "rope: gradient"), saved[0].contiguous(), -saved[1]), {}, {}};
  }
};

at::Tensor rope_aten(const at::Tensor& x, const RopeTable& table) {
  const std::int64_t half = x.size(3) / 2;
  const auto of_tokens = [&](const at::Tensor& t) {
    return t.narrow(0, 0, x.size(1)).unsqueeze(1).to(x.options());  // [T, 1, half]
  };
  const at::Tensor cosine = of_tokens(table.cosine), sine = of_tokens(table.sine);
  const at::Tensor first = x.narrow(3, 0, half), second = x.narrow(3, half, half);
  return at::cat(at::TensorList{first * cosine - second * sine, second * cosine + first * sine}, 3);
}

}  // namespace

at::Tensor rope(Backend backend, const at::Tensor& x, const RopeTable& table) {
  TORCH_CHECK(x.dim() == 4 && x.size(3) % 2 == 0 && table.positions() >= x.size(1) &&
                  table.cosine.size(1) == x.size(3) / 2,
              "rope: a table of ", table.cosine.sizes(), " for x ", x.sizes());
  return backend == Backend::cpu ? RopeFunction::apply(x, table.cosine, table.sine) : rope_aten(x, table);
}

}  // namespace sinkscope
