#include "ops/differentiable/linear.h"

#include <ATen/ops/linear.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "ops/aligned_buffer.h"
#include "ops/differentiable/factors.h"
#include "ops/differentiable/row_sums.h"
#include "ops/differentiable/training_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Pieces of the weights' gradients, each summed by one thread over all rows: larger ones are quicker, but
// there should be enough for all threads.
constexpr std::int64_t tile_inputs = 256;
constexpr std::int64_t many_tiles = 8;

struct Sizes {
  std::int64_t rows, in;
};
Sizes sizes_of(const at::Tensor& x) {
  return {x.numel() / std::max<std::int64_t>(1, x.size(-1)), x.size(-1)};
}

void check_shapes(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  TORCH_CHECK(x.dim() >= 1 && !weights.empty(), "linear: x ", x.sizes(), " and ", weights.size(), " weights");
  TORCH_CHECK(biases.empty() || biases.size() == weights.size(), "linear: ", biases.size(), " biases for ",
              weights.size(), " weights");
  for (std::size_t i = 0; i < weights.size(); ++i) {
    TORCH_CHECK(weights[i].dim() == 2 && weights[i].size(1) == x.size(-1), "linear: weight ",
                weights[i].sizes(), " for x ", x.sizes());
    TORCH_CHECK(biases.empty() || (biases[i].dim() == 1 && biases[i].size(0) == weights[i].size(0)),
                "linear: bias ", biases.empty() ? x.sizes() : biases[i].sizes(), " for weight ",
                weights[i].sizes());
  }
}

std::vector<std::int64_t> with_last(at::IntArrayRef sizes, std::int64_t last) {
  std::vector<std::int64_t> result(sizes.begin(), sizes.end());
  result.back() = last;
  return result;
}

// Rows [begin, end) of x as factors, written where the whole of them is kept; float32 stays where it is.
template <typename T>
const T* convert_rows(const at::Tensor& x, const at::Tensor& kept, std::int64_t width, std::int64_t begin,
                      std::int64_t end) {
  if constexpr (!std::is_same_v<T, float>)
    factor_kernels<T>(training_kernels())
        .convert(storage_of<float>(x) + begin * width, storage_of<T>(kept) + begin * width,
                 (end - begin) * width);
  return storage_of<T>(kept) + begin * width;
}

void add_bias(const float* bias, float* y, std::int64_t rows, std::int64_t width) {
  for (std::int64_t row = 0; row < rows; ++row) cpu_kernels().f32.add(y + row * width, bias, width);
}

struct Forward {
  variable_list results;
  at::Tensor kept_x;          // T [N, in]
  variable_list kept_weight;  // T [out, in] each
};

template <typename T>
Forward forward_cpu(const at::Tensor& x, at::TensorList weights, at::TensorList biases) {
  const auto [rows, in] = sizes_of(x);
  Forward made;
  made.kept_x = std::is_same_v<T, float> ? x : empty_tensor<T>({rows, in});
  for (const at::Tensor& weight : weights) {
    made.kept_weight.push_back(as_factor<T>(contiguous_floats(weight, "linear: weight")));
    made.results.push_back(empty_tensor<float>(with_last(x.sizes(), weight.size(0))));
  }
  parallel_rows(rows, rows_at_a_time(rows), [&, in = in](std::int64_t begin, std::int64_t end) {
    const T* factor = convert_rows<T>(x, made.kept_x, in, begin, end);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const std::int64_t out = weights[i].size(0);
      float* y = storage_of<float>(made.results[i]) + begin * out;
      multiply_matrices({end - begin, out, in}, Factor<T>{factor, in},
                        transposed(storage_of<T>(made.kept_weight[i]), in), y, out);
      if (!biases.empty()) add_bias(storage_of<float>(biases[i]), y, end - begin, out);
    }
  });
  return made;
}

// What one backward pass is given and which gradients it is to make.
struct Backward {
  std::int64_t rows, in;
  at::Tensor x;           // T
  variable_list weights;  // T
  variable_list dy;       // float32, contiguous
  bool wants_dx;
  std::vector<bool> wants_weight;
};

// dx = sum_i dy_i W_i, and dy as factors.
template <typename T>
at::Tensor input_gradient(const Backward& pass, const variable_list& factors, at::IntArrayRef sizes) {
  at::Tensor dx = pass.wants_dx ? empty_tensor<float>(sizes) : at::Tensor();
  parallel_rows(pass.rows, rows_at_a_time(pass.rows), [&](std::int64_t begin, std::int64_t end) {
    for (std::size_t i = 0; i < pass.weights.size(); ++i) {
      const std::int64_t out = pass.weights[i].size(0);
      const T* dy = convert_rows<T>(pass.dy[i], factors[i], out, begin, end);
      if (pass.wants_dx)
        multiply_matrices({end - begin, pass.in, out}, Factor<T>{dy, out},
                          Factor<T>{storage_of<T>(pass.weights[i]), pass.in},
                          storage_of<float>(dx) + begin * pass.in, pass.in, i > 0);
    }
  });
  return dx;
}

struct Tile {
  std::size_t weight;
  std::int64_t output, outputs, input, inputs;
};

std::vector<Tile> cut_weights(const Backward& pass, std::int64_t tile_outputs) {
  std::vector<Tile> tiles;
  for (std::size_t i = 0; i < pass.weights.size(); ++i) {
    const std::int64_t out = pass.wants_weight[i] ? pass.weights[i].size(0) : 0;
    for (std::int64_t output = 0; output < out; output += tile_outputs)
      for (std::int64_t input = 0; input < pass.in; input += tile_inputs)
        tiles.push_back(
            {i, output, std::min(tile_outputs, out - output), input, std::min(tile_inputs, pass.in - input)});
  }
  return tiles;
}

// dW = dy^T x, every tile of it over all rows at once.
template <typename T>
variable_list weight_gradients(const Backward& pass, const variable_list& factors) {
  variable_list gradients(pass.weights.size());
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (pass.wants_weight[i]) gradients[i] = empty_tensor<float>(pass.weights[i].sizes());
  std::vector<Tile> tiles = cut_weights(pass, 256);
  if (static_cast<std::int64_t>(tiles.size()) < many_tiles) tiles = cut_weights(pass, 128);
  parallel_for(static_cast<std::int64_t>(tiles.size()), [&](std::int64_t index) {
    const Tile& tile = tiles[index];
    const std::int64_t out = pass.weights[tile.weight].size(0);
    multiply_matrices({tile.outputs, tile.inputs, pass.rows},
                      transposed(storage_of<T>(factors[tile.weight]) + tile.output, out),
                      Factor<T>{storage_of<T>(pass.x) + tile.input, pass.in},
                      storage_of<float>(gradients[tile.weight]) + tile.output * pass.in + tile.input,
                      pass.in);
  });
  return gradients;
}

class LinearFunction : public torch::autograd::Function<LinearFunction> {
 public:
  static variable_list forward(AutogradContext* context, const at::Tensor& x, at::TensorList weights,
                               at::TensorList biases, ProductPrecision precision) {
    const at::Tensor input = contiguous_floats(x, "linear: x");
    variable_list bias_rows;
    for (const at::Tensor& bias : biases) bias_rows.push_back(contiguous_floats(bias, "linear: bias"));
    Forward made = with_factor(precision, [&](auto* type) {
      return forward_cpu<std::remove_pointer_t<decltype(type)>>(input, weights, bias_rows);
    });
    variable_list kept{made.kept_x};
    kept.insert(kept.end(), made.kept_weight.begin(), made.kept_weight.end());
    context->save_for_backward(std::move(kept));
    context->saved_data["sizes"] = x.sizes();
    context->saved_data["biases"] = static_cast<std::int64_t>(biases.size());
    context->saved_data["bf16"] = precision == ProductPrecision::bf16;
    return made.results;
  }

  static variable_list backward(AutogradContext* context, variable_list dy) {
    const auto precision =
        context->saved_data["bf16"].toBool() ? ProductPrecision::bf16 : ProductPrecision::f32;
    return with_factor(
        precision, [&](auto* type) { return gradients<std::remove_pointer_t<decltype(type)>>(context, dy); });
  }

 private:
  template <typename T>
  static variable_list gradients(AutogradContext* context, const variable_list& dy) {
    const std::vector<std::int64_t> sizes = context->saved_data["sizes"].toIntVector();
    const std::size_t count = dy.size();
    variable_list saved = context->get_saved_variables();
    Backward pass{0, sizes.back(), saved[0], {saved.begin() + 1, saved.end()}, {}, false, {}};
    pass.rows = sizes_of(saved[0]).rows;
    pass.wants_dx = context->needs_input_grad(0);
    variable_list factors;
    for (std::size_t i = 0; i < count; ++i) {
      pass.dy.push_back(contiguous_floats(dy[i], "linear: gradient"));
      pass.wants_weight.push_back(context->needs_input_grad(1 + i));
      factors.push_back(std::is_same_v<T, float> ? pass.dy[i] : empty_tensor<T>(dy[i].sizes()));
    }
    variable_list result{input_gradient<T>(pass, factors, sizes)};
    for (at::Tensor& gradient : weight_gradients<T>(pass, factors)) result.push_back(std::move(gradient));
    const auto biases = static_cast<std::size_t>(context->saved_data["biases"].toInt());
    for (std::size_t i = 0; i < biases; ++i)
      result.push_back(sum_of_rows(pass.dy[i], pass.rows, pass.dy[i].size(-1)));
    result.emplace_back();  // precision
    return result;
  }
};

at::Tensor linear_aten(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       ProductPrecision precision) {
  if (precision == ProductPrecision::f32)
    return bias.defined() ? at::linear(x, weight, bias) : at::linear(x, weight);
  const at::Tensor y = at::linear(x.to(at::kBFloat16), weight.to(at::kBFloat16)).to(x.scalar_type());
  return bias.defined() ? y + bias : y;
}

}  // namespace

std::vector<at::Tensor> linear(Backend backend, const at::Tensor& x, at::TensorList weights,
                               at::TensorList biases, ProductPrecision precision) {
  check_shapes(x, weights, biases);
  if (backend == Backend::cpu) return LinearFunction::apply(x, weights, biases, precision);
  std::vector<at::Tensor> results;
  for (std::size_t i = 0; i < weights.size(); ++i)
    results.push_back(linear_aten(x, weights[i], biases.empty() ? at::Tensor() : biases[i], precision));
  return results;
}

at::Tensor linear(Backend backend, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  ProductPrecision precision) {
  const at::TensorList biases = bias.defined() ? at::TensorList(bias) : at::TensorList();
  return linear(backend, x, at::TensorList(weight), biases, precision)[0];
}

}  // namespace sinkscope
