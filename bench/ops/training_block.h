// A transformer block of a small language model in the differentiable operations, for the benchmarks of
// training.
#pragma once

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <omp.h>

#include <cmath>
#include <utility>
#include <vector>

#include "ops/differentiable/attention.h"
#include "ops/differentiable/kept_memory.h"
#include "ops/differentiable/linear.h"
#include "ops/differentiable/rms_norm.h"
#include "ops/differentiable/rope.h"
#include "ops/differentiable/swiglu.h"
#include "ops/parallel.h"

namespace sinkscope {

constexpr double training_eps = 1e-5;

inline void count_flops(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// How a case computes.
enum Way : std::int64_t { aten, fused_f32, fused_bf16 };

// Every processor to whoever computes: our threads, or OpenMP's, which libtorch starts (and whose waiting
// would cost ours their time).
inline void use_all_processors(std::int64_t way) {
  const auto processors = omp_get_num_procs();
  set_thread_count(processors);
  at::set_num_threads(way == aten ? processors : 1);
  keep_freed_memory();
}

inline Backend backend_of(std::int64_t way) { return way == aten ? Backend::aten : Backend::cpu; }
inline ProductPrecision precision_of(std::int64_t way) {
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

inline at::Tensor weight(std::int64_t out, std::int64_t in) {
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
    const AddedNorm first = add_rms_norm(backend, x, update, attention_norm, training_eps);
    const auto qkv = linear(backend, first.normed, {q, k, v}, {}, precision);
    const at::Tensor attended = attention(
        backend, rope(backend, heads(qkv[0]), table), rope(backend, heads(qkv[1]), table), heads(qkv[2]),
        1.0 / std::sqrt(static_cast<double>(shape.width / shape.heads)), mask, precision);
    const at::Tensor mixed = linear(backend, attended.reshape(x.sizes()), out, {}, precision);
    const AddedNorm second = add_rms_norm(backend, first.sum, mixed, mlp_norm, training_eps);
    const auto gates = linear(backend, second.normed, {gate, up}, {}, precision);
    return {second.sum, linear(backend, swiglu(backend, gates[0], gates[1]), down, {}, precision)};
  }

  std::vector<at::Tensor> parameters() const {
    return {q, k, v, out, gate, up, down, attention_norm, mlp_norm};
  }

  BlockShape shape;
  RopeTable table;
  at::Tensor q, k, v, out, gate, up, down, attention_norm, mlp_norm;
};

}  // namespace sinkscope
