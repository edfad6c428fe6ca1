// One transformer block of a small language model, forward and backward, in our kernels and in libtorch's
// plain operations with autograd; the products and the head's loss by themselves. GFLOP/s counts two
// operations per multiply-add, and the backward pass as twice the forward one. Compare within one run.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <omp.h>

#include "ops/differentiable/adamw.h"
#include "ops/differentiable/attention.h"
#include "ops/differentiable/cross_entropy.h"
#include "ops/differentiable/embedding.h"
#include "ops/differentiable/kept_memory.h"
#include "ops/differentiable/linear.h"
#include "ops/differentiable/rms_norm.h"
#include "ops/differentiable/rope.h"
#include "ops/differentiable/swiglu.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr double eps = 1e-5;

void count_flops(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// How a case computes.
enum Way : std::int64_t { aten, fused_f32, fused_bf16 };

// Every processor to whoever computes: our threads, or OpenMP's, which libtorch starts (and whose waiting
// would cost ours their time).
void use_all_processors(std::int64_t way) {
  const auto processors = omp_get_num_procs();
  set_thread_count(processors);
  at::set_num_threads(way == aten ? processors : 1);
  keep_freed_memory();
}

Backend backend_of(std::int64_t way) { return way == aten ? Backend::aten : Backend::cpu; }
ProductPrecision precision_of(std::int64_t way) {
  return way == fused_bf16 ? ProductPrecision::bf16 : ProductPrecision::f32;
}

struct BlockShape {
  std::int64_t width, heads, mlp, batch, positions;

  double flops() const {
    const auto tokens = static_cast<double>(batch * positions);
    const auto weights = static_cast<double>(4 * width * width + 3 * width * mlp);
    return 6 * tokens * (weights + 2 * static_cast<double>(positions * width));
  }
};

constexpr BlockShape shapes[] = {{256, 4, 768, 32, 256}, {768, 8, 1536, 8, 512}};

at::Tensor weight(std::int64_t out, std::int64_t in) {
  return (at::randn({out, in}) * 0.02).requires_grad_();
}

struct Block {
  explicit Block(const BlockShape& s)
      : shape(s),
        table(rope_table(s.positions, {s.width / s.heads, 10000.0}, at::kCPU)),
        q(weight(s.width, s.width)),
        k(weight(s.width, s.width)),
        v(weight(s.width, s.width)),
        out(weight(s.width, s.width)),
        gate(weight(s.mlp, s.width)),
        up(weight(s.mlp, s.width)),
        down(weight(s.width, s.mlp)),
        attention_norm(at::ones({s.width}).requires_grad_()),
        mlp_norm(at::ones({s.width}).requires_grad_()) {}

  // The residual stream and the update that is to be added to it, [B T, W], to the next such pair.
  std::pair<at::Tensor, at::Tensor> run(const at::Tensor& x, const at::Tensor& update, std::int64_t way,
                                        const AttentionMask& mask) const {
    const Backend backend = backend_of(way);
    const ProductPrecision precision = precision_of(way);
    const auto heads = [&](const at::Tensor& y) {
      return y.view({shape.batch, shape.positions, shape.heads, shape.width / shape.heads});
    };
    const AddedNorm first = add_rms_norm(backend, x, update, attention_norm, eps);
    const auto qkv = linear(backend, first.normed, {q, k, v}, {}, precision);
    const at::Tensor attended = attention(
        backend, rope(backend, heads(qkv[0]), table), rope(backend, heads(qkv[1]), table), heads(qkv[2]),
        1.0 / std::sqrt(static_cast<double>(shape.width / shape.heads)), mask, precision);
    const at::Tensor mixed = linear(backend, attended.reshape(x.sizes()), out, {}, precision);
    const AddedNorm second = add_rms_norm(backend, first.sum, mixed, mlp_norm, eps);
    const auto gates = linear(backend, second.normed, {gate, up}, {}, precision);
    return {second.sum, linear(backend, swiglu(backend, gates[0], gates[1]), down, {}, precision)};
  }

  void zero_gradients() const {
    for (const at::Tensor* t : {&q, &k, &v, &out, &gate, &up, &down, &attention_norm, &mlp_norm})
      t->mutable_grad().reset();
  }

  BlockShape shape;
  RopeTable table;
  at::Tensor q, k, v, out, gate, up, down, attention_norm, mlp_norm;
};

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
    add_rms_norm(backend_of(state.range(0)), sum, last, layer.mlp_norm, eps).normed.backward(gradient);
    layer.zero_gradients();
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
    add_rms_norm(Backend::cpu, x, update, w, eps).normed.backward(gradient);
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
