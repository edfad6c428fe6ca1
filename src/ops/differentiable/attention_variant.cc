#include "ops/differentiable/attention_variant.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "ops/unseen_keys.h"

namespace sinkscope {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr std::int64_t most_scores_at_once = std::int64_t{1} << 22;  // 16 MB in float32

// Everything that has a gradient, in the order of AttentionVariantFunction's inputs.
struct Inputs {
  at::Tensor q, k, v;
  AttentionVariantWeights weights;
};

variable_list listed(const Inputs& in) {
  const AttentionVariantWeights& w = in.weights;
  return {in.q,        in.k,        in.v, w.slot_key, w.slot_value, w.value_bias, w.relative_bias,
          w.kernel_in, w.kernel_out};
}

Inputs inputs_of(const variable_list& list) {
  return {list[0], list[1], list[2], {list[3], list[4], list[5], list[6], list[7], list[8]}};
}

// [1, 1, T, slot + T], true where the query does not see the column; undefined where it sees all.
at::Tensor hidden_columns(const AttentionMask& mask, const at::Tensor& positions, std::int64_t slot) {
  if (!mask.causal) return {};
  const at::Tensor unseen = unseen_keys(positions, positions.size(0), mask.window, mask.prefix);
  return at::constant_pad_nd(unseen, {slot, 0}).unsqueeze(0).unsqueeze(0);
}

// Of some sequences.
at::Tensor attend(const AttentionVariant& variant, const Inputs& in, const AttentionMask& mask) {
  const VariantOfLayer layer{&variant, &in.weights};
  const std::int64_t length = in.q.size(1), heads = in.q.size(2);
  const auto heads_first = [&](const at::Tensor& x) {
    return x.transpose(1, 2).repeat_interleave(heads / x.size(2), 1);
  };
  const at::Tensor positions = at::arange(length, at::TensorOptions(at::kLong).device(in.q.device()));
  const at::Tensor scores =
      variant_scores(layer, heads_first(in.q), with_slot(heads_first(in.k), in.weights.slot_key), positions,
                     positions, mask.causal);
  const at::Tensor hidden = hidden_columns(mask, positions, slot_columns(variant));
  const at::Tensor rows = variant_rows(variant, scores, hidden).used;
  at::Tensor output = at::matmul(rows, with_slot(heads_first(in.v), in.weights.slot_value)).transpose(1, 2);
  return in.weights.value_bias.defined() ? output + in.weights.value_bias : output;
}

std::int64_t sequences_at_once(const at::Tensor& q) {
  return std::max<std::int64_t>(1, most_scores_at_once / (q.size(2) * q.size(1) * q.size(1)));
}

Inputs sequences_of(const Inputs& in, std::int64_t first, std::int64_t count) {
  const auto part = [&](const at::Tensor& x) { return x.narrow(0, first, count); };
  return {part(in.q), part(in.k), part(in.v), in.weights};
}

// What autograd takes for an input that may be absent; an undefined tensor it does not.
using MaybeTensor = c10::optional<at::Tensor>;
MaybeTensor if_defined(const at::Tensor& x) { return x.defined() ? MaybeTensor(x) : MaybeTensor(); }

// The variant travels through the context as what it is: a small struct.
struct VariantHolder : torch::CustomClassHolder {
  AttentionVariant variant;
  AttentionMask mask;
};

class AttentionVariantFunction : public torch::autograd::Function<AttentionVariantFunction> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& q, const at::Tensor& k,
                            const at::Tensor& v, const MaybeTensor& slot_key, const MaybeTensor& slot_value,
                            const MaybeTensor& value_bias, const MaybeTensor& relative_bias,
                            const MaybeTensor& kernel_in, const MaybeTensor& kernel_out,
                            const AttentionVariant& variant, const AttentionMask& mask) {
    variable_list all{q, k, v};
    for (const MaybeTensor* x :
         {&slot_key, &slot_value, &value_bias, &relative_bias, &kernel_in, &kernel_out})
      all.push_back(x->value_or(at::Tensor()));
    const Inputs in = inputs_of(all);
    context->save_for_backward(all);
    auto holder = c10::make_intrusive<VariantHolder>();
    holder->variant = variant;
    holder->mask = mask;
    context->saved_data["variant"] = c10::IValue::make_capsule(holder);
    std::vector<at::Tensor> outputs;
    const std::int64_t step = sequences_at_once(q);
    for (std::int64_t first = 0; first < q.size(0); first += step)
      outputs.push_back(attend(variant, sequences_of(in, first, std::min(step, q.size(0) - first)), mask));
    return at::cat(outputs, 0);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradient) {
    const auto holder = context->saved_data["variant"].toCapsule();
    const auto& kept = static_cast<const VariantHolder&>(*holder);
    const variable_list all = context->get_saved_variables();
    const at::Tensor& q = all[0];
    std::vector<std::vector<at::Tensor>> heads(3);  // pieces of the gradients of q, k and v
    variable_list gradients(all.size() + 2);        // none for variant and mask
    const std::int64_t step = sequences_at_once(q);
    for (std::int64_t first = 0; first < q.size(0); first += step) {
      const std::int64_t count = std::min(step, q.size(0) - first);
      const variable_list piece =
          backward_of(kept, sequences_of(inputs_of(all), first, count), gradient[0].narrow(0, first, count));
      for (std::size_t i = 0; i < piece.size(); ++i) {
        if (i < heads.size())
          heads[i].push_back(piece[i]);
        else if (piece[i].defined())
          gradients[i] = gradients[i].defined() ? gradients[i] + piece[i] : piece[i];
      }
    }
    for (std::size_t i = 0; i < heads.size(); ++i) gradients[i] = at::cat(heads[i], 0);
    return gradients;
  }

 private:
  static variable_list backward_of(const VariantHolder& kept, const Inputs& in, const at::Tensor& gradient) {
    const at::AutoGradMode with_gradients(true);
    variable_list leaves = listed(in);
    variable_list wanted;
    for (at::Tensor& leaf : leaves)
      if (leaf.defined()) wanted.push_back(leaf = leaf.detach().requires_grad_(true));
    const at::Tensor output = attend(kept.variant, inputs_of(leaves), kept.mask);
    const variable_list found = torch::autograd::grad({output}, wanted, {gradient}, /*retain_graph=*/false,
                                                      /*create_graph=*/false, /*allow_unused=*/true);
    variable_list result(leaves.size());
    for (std::size_t i = 0, next = 0; i < leaves.size(); ++i)
      if (leaves[i].defined()) {
        result[i] = found[next].defined() ? found[next] : at::zeros_like(leaves[i]);
        ++next;
      }
    return result;
  }
};

}  // namespace

at::Tensor attention_variant(const VariantOfLayer& layer, const at::Tensor& q, const at::Tensor& k,
                             const at::Tensor& v, const AttentionMask& mask) {
  const AttentionVariantWeights& w = *layer.weights;
  return AttentionVariantFunction::apply(
      q, k, v, if_defined(w.slot_key), if_defined(w.slot_value), if_defined(w.value_bias),
      if_defined(w.relative_bias), if_defined(w.kernel_in), if_defined(w.kernel_out), *layer.variant, mask);
}

}  // namespace sinkscope
