// One transformer block of a small language model, forward and backward, in our kernels and in libtorch's
// plain operations with autograd; the products and the head's loss by themselves. GFLOP/s counts two
// operations per multiply-add, and the backward pass as twice the forward one. Compare within one run.
#include "ops/differentiable/adamw.h"
#include "ops/differentiable/cross_entropy.h"
#include "training_block.h"

namespace sinkscope {
namespace {

constexpr BlockShape shapes[] = {{256, 4, 768, 32, 256}, {768, 8, 1536, 8, 512}};

// arguments: Way, shape, causal or not
void block(benchmark::State& state) {
  use_all_processors(state.range(0));
  const BlockShape& shape = shapes[state.range(1)];
  const Block layer(shape);
  const std::int64_t tokens = shape.batch * shape.positions;
  const at::Tensor x = at::randn({tokens, shape.width}).requires_grad_();
  const at::Tensor update = at::randn({tokens, shape.width}).requires_grad_();
  const at::Tensor gradient = at::randn({tokens, shape.width});
  for (auto _ : state) {
    const auto [sum, last] = layer.run(x, update, state.range(0), {state.range(2) != 0});
    // both results with the same gradient, without a pass over either
    add_rms_norm(backend_of(state.range(0)), sum, last, layer.mlp_norm, training_eps)
        .normed.backward(gradient);
    for (const at::Tensor& parameter : layer.parameters()) parameter.mutable_grad().reset();
    x.mutable_grad().reset();
    update.mutable_grad().reset();
  }
  count_flops(state, shape.flops());
}
BENCHMARK(block)
    ->ArgsProduct({{aten, fused_f32, fused_bf16}, {0, 1}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// arguments: Way, rows, in, out; the forward pass and both gradients
void linear_layer(benchmark::State& state) {
  use_all_processors(state.range(0));
  const std::int64_t rows = state.range(1), in = state.range(2), out = state.range(3);
  const at::Tensor x = at::randn({rows, in}).requires_grad_(), w = weight(out, in);
  const at::Tensor gradient = at::randn({rows, out});
  for (auto _ : state) {
    linear(backend_of(state.range(0)), x, w, {}, precision_of(state.range(0))).backward(gradient);
    x.mutable_grad().reset();
    w.mutable_grad().reset();
  }
  count_flops(state, 6.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(linear_layer)
    ->ArgsProduct({{fused_f32, fused_bf16}, {8192}, {256}, {256, 768}})
    ->ArgsProduct({{fused_f32, fused_bf16}, {4096}, {768}, {768, 1536}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

enum ProductKind : std::int64_t { forward, input_gradient, weight_gradient };

// One thread's product as linear() cuts it. arguments: bfloat16 or not, ProductKind, rows, in, out
void training_product(benchmark::State& state) {
  const std::int64_t rows = state.range(2), in = state.range(3), out = state.range(4);
  const at::ScalarType type = state.range(0) != 0 ? at::kBFloat16 : at::kFloat;
  const at::Tensor x = at::randn({rows, in}).to(type), w = at::randn({out, in}).to(type),
                   dy = at::randn({rows, out}).to(type);
  at::Tensor result = at::empty({std::max(rows, out), std::max(in, out)});
  const auto multiply = [&](auto* t) {
    using T = std::remove_pointer_t<decltype(t)>;
    const auto data = [](const at::Tensor& of) { return static_cast<const T*>(of.data_ptr()); };
    auto* c = result.data_ptr<float>();
    if (state.range(1) == forward)
      multiply_matrices({rows, out, in}, Factor<T>{data(x), in}, transposed(data(w), in), c, out);
    else if (state.range(1) == input_gradient)
      multiply_matrices({rows, in, out}, Factor<T>{data(dy), out}, Factor<T>{data(w), in}, c, in);
    else
      multiply_matrices({out, in, rows}, transposed(data(dy), out), Factor<T>{data(x), in}, c, in);
  };
  for (auto _ : state)
    if (type == at::kBFloat16)
      multiply(static_cast<Bfloat16*>(nullptr));
    else
      multiply(static_cast<float*>(nullptr));
  count_flops(state, 2.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(training_product)
    ->ArgsProduct({{0, 1}, {forward, input_gradient}, {256}, {256, 768}, {256, 768, 1536}})
    ->ArgsProduct({{0, 1}, {weight_gradient}, {8192}, {256}, {128}})
    ->Unit(benchmark::kMicrosecond)
    ->UseRealTime();

// arguments: Way, batch, positions, heads, width of a head, causal or not
void attention_layer(benchmark::State& state) {
  use_all_processors(state.range(0));
  const std::int64_t batch = state.range(1), positions = state.range(2), heads = state.range(3),
                     width = state.range(4);
  const auto random = [&] { return at::randn({batch, positions, heads, width}).requires_grad_(); };
  const at::Tensor q = random(), k = random(), v = random();
  const at::Tensor gradient = at::randn({batch, positions, heads, width});
  for (auto _ : state) {
    attention(backend_of(state.range(0)), q, k, v, 0.125, {state.range(5) != 0}, precision_of(state.range(0)))
        .backward(gradient);
    for (const at::Tensor* t : {&q, &k, &v}) t->mutable_grad().reset();
  }
  count_flops(state, 12.0 * static_cast<double>(batch * heads * positions * positions * width));
}
BENCHMARK(attention_layer)
    ->ArgsProduct({{aten, fused_f32, fused_bf16}, {32}, {256}, {4}, {64}, {0, 1}})
    ->ArgsProduct({{fused_f32, fused_bf16}, {8}, {512}, {8}, {96}, {0, 1}})
    ->ArgsProduct({{fused_f32, fused_bf16}, {2}, {2048}, {8}, {64}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// arguments: Way, rows, width, vocabulary
void head_loss(benchmark::State& state) {
  use_all_processors(state.range(0));
  const std::int64_t rows = state.range(1), width = state.range(2), vocabulary = state.range(3);
  const at::Tensor hidden = at::randn({rows, width}).requires_grad_(), head = weight(vocabulary, width);
  const auto integers = at::TensorOptions(at::kLong);
  const PredictedRows predicted{at::arange(rows, integers), at::randint(0, vocabulary, {rows}, integers),
                                at::ones({rows})};
  for (auto _ : state) {
    cross_entropy(backend_of(state.range(0)), hidden, head, predicted, precision_of(state.range(0)))
        .loss.backward();
    hidden.mutable_grad().reset();
    head.mutable_grad().reset();
  }
  count_flops(state, 6.0 * static_cast<double>(rows * width * vocabulary));
}
BENCHMARK(head_loss)
    ->ArgsProduct({{aten, fused_f32, fused_bf16}, {4096}, {256}, {4096}})
    ->ArgsProduct({{fused_f32, fused_bf16}, {2048}, {768}, {50000}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// What passes over values once: bytes/s of what is read and written. argument: rows of 256
void swiglu_pass(benchmark::State& state) {
  use_all_processors(fused_f32);
  const at::Tensor gate = at::randn({state.range(0), 256}).requires_grad_(),
                   up = at::randn({state.range(0), 256});
  const at::Tensor gradient = at::randn({state.range(0), 256});
  for (auto _ : state) {
    swiglu(Backend::cpu, gate, up).backward(gradient);
    gate.mutable_grad().reset();
  }
  state.SetBytesProcessed(state.iterations() * gate.numel() * 8 * 4);
}
BENCHMARK(swiglu_pass)->Arg(24576)->Unit(benchmark::kMillisecond)->UseRealTime();

void norm_pass(benchmark::State& state) {
  use_all_processors(fused_f32);
  const at::Tensor x = at::randn({state.range(0), 256}).requires_grad_(),
                   update = at::randn({state.range(0), 256}), w = at::ones({256}).requires_grad_();
  const at::Tensor gradient = at::randn({state.range(0), 256});
  for (auto _ : state) {
    add_rms_norm(Backend::cpu, x, update, w, training_eps).normed.backward(gradient);
    x.mutable_grad().reset();
    w.mutable_grad().reset();
  }
  state.SetBytesProcessed(state.iterations() * x.numel() * 7 * 4);
}
BENCHMARK(norm_pass)->Arg(8192)->Unit(benchmark::kMillisecond)->UseRealTime();

// argument: Way; 20 million values
void optimiser_step(benchmark::State& state) {
  use_all_processors(state.range(0));
  std::vector<AdamwParameter> parameters;
  for (int i = 0; i < 20; ++i)
    parameters.push_back({at::randn({1000, 1000}), at::randn({1000, 1000}), at::zeros({1000, 1000}),
                          at::zeros({1000, 1000}), 0.1});
  for (auto _ : state) adamw_step(backend_of(state.range(0)), parameters, {});
  state.SetBytesProcessed(state.iterations() * 20000000 * 7 * 4);
}
BENCHMARK(optimiser_step)->Arg(aten)->Arg(fused_f32)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sinkscope
