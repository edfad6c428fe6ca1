#include "ops/differentiable/attention.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/softmax.h>
#include <torch/csrc/autograd/custom_function.h>

#include <limits>

#include "ops/differentiable/attention_head.h"
#include "ops/differentiable/factors.h"
#include "ops/unseen_keys.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

struct Shape {
  std::int64_t batch, heads, key_heads;
  HeadShape head;

  std::int64_t group() const { return heads / key_heads; }
};

// Rows of one head of x [B, T, heads, D].
template <typename Float>
HeadRows<Float> rows_of(const at::Tensor& x, std::int64_t sequence, std::int64_t head) {
  const std::int64_t stride = x.size(2) * x.size(3);
  return {storage_of<float>(x) + sequence * x.size(1) * stride + head * x.size(3), stride};
}

// One head of kept factors [B, heads, T, D].
template <typename T>
T* factors_of(const at::Tensor& kept, std::int64_t sequence, std::int64_t head) {
  return storage_of<T>(kept) + (sequence * kept.size(1) + head) * kept.size(2) * kept.size(3);
}

// [B, T, heads, D] -> [B, heads, T, D]
template <typename T>
at::Tensor empty_factors(const at::Tensor& x) {
  return empty_tensor<T>({x.size(0), x.size(2), x.size(1), x.size(3)});
}

template <typename T>
T* convert_head(const at::Tensor& x, const at::Tensor& kept, std::int64_t sequence, std::int64_t head) {
  const HeadRows<const float> rows = rows_of<const float>(x, sequence, head);
  T* to = factors_of<T>(kept, sequence, head);
  for (std::int64_t i = 0; i < x.size(1); ++i)
    factor_kernels<T>(training_kernels()).convert(rows.row(i), to + i * x.size(3), x.size(3));
  return to;
}

// Calls body(sequence, key head) on all threads.
template <typename Body>
void for_each_key_head(const Shape& shape, Body body) {
  parallel_for(shape.batch * shape.key_heads,
               [&](std::int64_t i) { body(i / shape.key_heads, i % shape.key_heads); });
}

struct Kept {
  at::Tensor output, q, k, v;  // the factors [B, heads, T, D]
  at::Tensor log_sum;          // [B, H, T]
};

float* log_sums_of(const Kept& kept, std::int64_t sequence, std::int64_t head) {
  return storage_of<float>(kept.log_sum) + (sequence * kept.log_sum.size(1) + head) * kept.log_sum.size(2);
}

template <typename T>
Kept attend_all(const Shape& shape, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
  const Kept kept{empty_tensor<float>(q.sizes()), empty_factors<T>(q), empty_factors<T>(k),
                  empty_factors<T>(v), empty_tensor<float>({shape.batch, shape.heads, shape.head.positions})};
  for_each_key_head(shape, [&](std::int64_t sequence, std::int64_t key_head) {
    HeadFactors<T> factors{nullptr, convert_head<T>(k, kept.k, sequence, key_head),
                           convert_head<T>(v, kept.v, sequence, key_head)};
    for (std::int64_t i = 0; i < shape.group(); ++i) {
      const std::int64_t head = key_head * shape.group() + i;
      factors.q = convert_head<T>(q, kept.q, sequence, head);
      attend(shape.head, factors, rows_of<float>(kept.output, sequence, head),
             log_sums_of(kept, sequence, head));
    }
  });
  return kept;
}

// Gradients of q, k and v.
template <typename T>
variable_list attend_all_backward(const Shape& shape, const Kept& kept, const at::Tensor& output_gradient) {
  const std::int64_t positions = shape.head.positions, width = shape.head.width;
  const auto gradient_of = [&](std::int64_t heads) {
    return empty_tensor<float>({shape.batch, positions, heads, width});
  };
  const at::Tensor dq = gradient_of(shape.heads), dk = gradient_of(shape.key_heads),
                   dv = gradient_of(shape.key_heads);
  for_each_key_head(shape, [&](std::int64_t sequence, std::int64_t key_head) {
    HeadFactors<T> factors{nullptr, factors_of<T>(kept.k, sequence, key_head),
                           factors_of<T>(kept.v, sequence, key_head)};
    for (std::int64_t i = 0; i < shape.group(); ++i) {
      const std::int64_t head = key_head * shape.group() + i;
      factors.q = factors_of<T>(kept.q, sequence, head);
      const HeadGradients gradients{rows_of<float>(dq, sequence, head),
                                    rows_of<float>(dk, sequence, key_head),
                                    rows_of<float>(dv, sequence, key_head), i > 0};
      attend_backward(shape.head, factors, rows_of<const float>(kept.output, sequence, head),
                      log_sums_of(kept, sequence, head),
                      rows_of<const float>(output_gradient, sequence, head), gradients);
    }
  });
  return {dq, dk, dv};
}

class AttentionFunction : public torch::autograd::Function<AttentionFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, double scale, const AttentionMask& mask,
                            ProductPrecision precision) {
    const Shape shape{
        q.size(0), q.size(2), k.size(2), {q.size(1), q.size(3), static_cast<float>(scale), mask}};
    const Kept kept = with_factor(precision, [&](auto* type) {
      return attend_all<std::remove_pointer_t<decltype(type)>>(shape, contiguous_floats(q, "attention: q"),
                                                               contiguous_floats(k, "attention: k"),
                                                               contiguous_floats(v, "attention: v"));
    });
    context->save_for_backward({kept.output, kept.q, kept.k, kept.v, kept.log_sum});
    context->saved_data["scale"] = scale;
    context->saved_data["mask"] =
        std::vector<std::int64_t>{static_cast<std::int64_t>(mask.causal), mask.prefix, mask.window};
    return kept.output;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const variable_list saved = context->get_saved_variables();
    const Kept kept{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const std::vector<std::int64_t> mask = context->saved_data["mask"].toIntVector();
    const Shape shape{kept.q.size(0),
                      kept.q.size(1),
                      kept.k.size(1),
                      {kept.q.size(2),
                       kept.q.size(3),
                       static_cast<float>(context->saved_data["scale"].toDouble()),
                       {mask[0] != 0, mask[1], mask[2]}}};
    const at::Tensor output_gradient = contiguous_floats(gradient[0], "attention: gradient");
    variable_list gradients = kept.q.scalar_type() == at::kFloat
                                  ? attend_all_backward<float>(shape, kept, output_gradient)
                                  : attend_all_backward<Bfloat16>(shape, kept, output_gradient);
    gradients.resize(6);  // none for scale, mask and precision
    return gradients;
  }
};

at::Tensor attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                          const AttentionMask& mask) {
  const std::int64_t group = q.size(2) / k.size(2);
  const auto heads_first = [](const at::Tensor& x) { return x.transpose(1, 2); };
  const auto repeated = [&](const at::Tensor& x) { return group == 1 ? x : x.repeat_interleave(group, 1); };
  at::Tensor scores =
      at::matmul(heads_first(q), repeated(heads_first(k)).transpose(2, 3)) * scale;  // [B, H, T, T]
  if (mask.causal) {
    const at::Tensor positions = at::arange(q.size(1), at::TensorOptions(at::kLong).device(q.device()));
    scores = scores.masked_fill(unseen_keys(positions, q.size(1), mask.window, mask.prefix),
                                -std::numeric_limits<double>::infinity());
  }
  return at::matmul(at::softmax(scores, -1), repeated(heads_first(v))).transpose(1, 2);
}

void check_shapes(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, double scale,
                  const AttentionMask& mask) {
  TORCH_CHECK(q.dim() == 4 && k.dim() == 4 && k.sizes() == v.sizes() && q.size(0) == k.size(0) &&
                  q.size(1) == k.size(1) && q.size(3) == k.size(3) && k.size(2) > 0 &&
                  q.size(2) % k.size(2) == 0,
              "attention: q ", q.sizes(), ", k ", k.sizes(), ", v ", v.sizes());
  TORCH_CHECK(scale > 0, "attention: scale ", scale, " is not positive");
  TORCH_CHECK(mask.prefix >= 0 && mask.window >= 0 && (mask.causal || (mask.prefix == 0 && mask.window == 0)),
              "attention: prefix ", mask.prefix, " and window ", mask.window, " of a ",
              mask.causal ? "causal" : "bidirectional", " mask");
}

}  // namespace

at::Tensor attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                     double scale, const AttentionMask& mask, ProductPrecision precision) {
  check_shapes(q, k, v, scale, mask);
  return backend == Backend::cpu ? AttentionFunction::apply(q, k, v, scale, mask, precision)
                                 : attention_aten(q, k, v, scale, mask);
}

}  // namespace sinkscope
