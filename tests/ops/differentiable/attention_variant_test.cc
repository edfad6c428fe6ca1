#include "ops/differentiable/attention_variant.h"

#include "../variant_cases.h"
#include "ops/attention.h"
#include "passes.h"

namespace sinkscope {
namespace {

using testing::VariantCase;

AttentionMask mask_of(const VariantCase& c) { return {c.causal, c.prefix, c.window}; }

// q, k, v, then the weights that the variant learns.
Tensors inputs_of(const VariantCase& c, std::int64_t batch, std::int64_t length, std::int64_t width,
                  at::ScalarType type) {
  at::manual_seed(4);
  const auto heads = [&](std::int64_t count) { return at::randn({batch, length, count, width}, type); };
  const AttentionVariantWeights w = random_weights(c, width, type);
  return {heads(c.heads), heads(c.kv_heads), heads(c.kv_heads), w.slot_key,  w.slot_value,
          w.value_bias,   w.relative_bias,   w.kernel_in,       w.kernel_out};
}

at::Tensor attend(const VariantCase& c, const Tensors& in) {
  const AttentionVariantWeights weights{in[3], in[4], in[5], in[6], in[7], in[8]};
  return attention_variant({&c.variant, &weights}, in[0], in[1], in[2], mask_of(c));
}

at::Tensor loss_of(const at::Tensor& output) {
  at::manual_seed(9);
  return (output * at::randn(output.sizes(), output.options())).sum();
}

// Of every defined input.
Tensors gradients_of(const VariantCase& c, const Tensors& inputs) {
  Tensors leaves;
  for (const at::Tensor& input : inputs)
    leaves.push_back(input.defined() ? input.clone().requires_grad_() : input);
  loss_of(attend(c, leaves)).backward();
  Tensors gradients;
  for (const at::Tensor& leaf : leaves) gradients.push_back(leaf.defined() ? leaf.grad() : leaf);
  return gradients;
}

class AttentionVariantGradient : public ::testing::TestWithParam<VariantCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, AttentionVariantGradient, ::testing::ValuesIn(testing::variant_cases()),
                         [](const auto& c) { return c.param.name; });

TEST_P(AttentionVariantGradient, IsTheFiniteDifference) {
  const Tensors inputs = inputs_of(GetParam(), 2, 6, 4, at::kDouble);
  const Tensors gradients = gradients_of(GetParam(), inputs);
  constexpr double h = 1e-5;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) continue;
    at::manual_seed(20 + i);
    const at::Tensor direction = at::randn_like(inputs[i]);
    const auto loss_at = [&](double along) {
      Tensors moved = inputs;
      moved[i] = inputs[i] + direction * along;
      return loss_of(attend(GetParam(), moved)).item<double>();
    };
    const at::Tensor products = gradients[i] * direction;
    EXPECT_NEAR((loss_at(h) - loss_at(-h)) / (2 * h), products.sum().item<double>(),
                1e-7 * (1 + products.abs().sum().item<double>()))
        << "input " << i;
  }
}

// Of sequences of one length.
at::Tensor of_forward_pass(const VariantCase& c, const Tensors& in) {
  const std::int64_t batch = in[0].size(0), length = in[0].size(1);
  std::vector<std::int64_t> offsets;
  for (std::int64_t b = 0; b <= batch; ++b) offsets.push_back(b * length);
  const std::vector<std::uint8_t> classes(static_cast<std::size_t>(batch * length), 0);
  const AttentionVariantWeights weights{in[3], in[4], in[5], in[6], in[7], in[8]};
  AttentionRequest request;
  request.layer_variant = {&c.variant, &weights};
  return attention(Backend::aten, in[0].flatten(0, 1), in[1].flatten(0, 1), in[2].flatten(0, 1),
                   {offsets, classes, {}, c.causal, c.window, c.prefix}, request)
      .output;
}

TEST_P(AttentionVariantGradient, IsOfTheSameOutputAsTheForwardPass) {
  const Tensors inputs = inputs_of(GetParam(), 3, 21, 8, at::kFloat);
  const at::Tensor right = of_forward_pass(GetParam(), inputs);
  const at::Tensor off = attend(GetParam(), inputs).reshape(right.sizes()) - right;
  EXPECT_LT(off.abs().max().item<double>(), 1e-5 * std::max(1.0, right.abs().max().item<double>()));
}

// Scores of a sequence are 2^21 numbers here, so that two sequences make a piece and the third one another.
TEST(AttentionVariantPieces, AddUpToThoseOfEachSequence) {
  const VariantCase c{
      "pieces",
      {.slot = KeySlot::key_value_bias, .value_bias = true, .positions = PositionEncoding::relative},
      true,
      0,
      0,
      2,
      1};
  const Tensors inputs = inputs_of(c, 3, 1024, 2, at::kFloat);
  const Tensors together = gradients_of(c, inputs);
  const at::Tensor output = attend(c, inputs);
  Tensors sums(inputs.size());
  for (std::int64_t b = 0; b < 3; ++b) {
    Tensors one = inputs;
    for (std::size_t i = 0; i < 3; ++i) one[i] = inputs[i].narrow(0, b, 1);
    EXPECT_TRUE(at::allclose(attend(c, one), output.narrow(0, b, 1), 1e-5, 1e-6));
    // The loss's weights of this sequence alone.
    Tensors leaves;
    for (const at::Tensor& input : one)
      leaves.push_back(input.defined() ? input.clone().requires_grad_() : input);
    at::manual_seed(9);
    const at::Tensor weights = at::randn(output.sizes()).narrow(0, b, 1);
    (attend(c, leaves) * weights).sum().backward();
    for (std::size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(at::allclose(leaves[i].grad(), together[i].narrow(0, b, 1), 1e-4, 1e-5)) << i;
    for (std::size_t i = 3; i < inputs.size(); ++i)
      if (inputs[i].defined()) sums[i] = sums[i].defined() ? sums[i] + leaves[i].grad() : leaves[i].grad();
  }
  for (const std::size_t i : {3, 4, 5, 6}) EXPECT_TRUE(at::allclose(sums[i], together[i], 1e-3, 1e-3)) << i;
}

}  // namespace
}  // namespace sinkscope
