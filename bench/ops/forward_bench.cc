// The operations of a block on the shapes of LLaDA-8B. GFLOP/s counts two operations per multiply-add.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

#include "ops/attention.h"
#include "ops/linear.h"
#include "ops/rms_norm.h"

namespace sinkscope {
namespace {

at::ScalarType type_of(std::int64_t index) { return index == 0 ? at::kFloat : at::kBFloat16; }

void count_flops(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// arguments: dtype, rows, in, out
void linear(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const std::int64_t rows = state.range(1), in = state.range(2), out = state.range(3);
  const at::Tensor weight = at::randn({out, in}).to(type);
  const at::Tensor x = at::randn({rows, in}).to(type);
  const Linear layer(Backend::cpu, weight, type, at::kCPU);
  const std::vector<std::int64_t> offsets{0, rows};
  for (auto _ : state) benchmark::DoNotOptimize(layer(x, offsets));
  count_flops(state, 2.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(linear)
    ->ArgsProduct({{0, 1}, {168, 512}, {4096}, {4096, 12288}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// arguments: dtype, positions, what is looked at (0 nothing, 1 columns, 2 everything, 3 columns with keys
// removed)
void attention_block(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const std::int64_t positions = state.range(1), heads = 32, width = 128;
  const auto random = [&] { return at::randn({positions, heads, width}).to(type); };
  const at::Tensor q = random(), k = random(), v = random();
  const std::vector<std::int64_t> offsets{0, positions};
  const std::vector<std::uint8_t> classes(static_cast<std::size_t>(positions), 2);
  std::vector<std::uint8_t> removed(static_cast<std::size_t>(heads * positions), 0);
  for (std::size_t i = 0; i < removed.size(); i += 37) removed[i] = 1;
  AttentionRequest request;
  request.columns = state.range(2) > 0;
  request.statistics = state.range(2) == 2;
  if (state.range(2) == 3) request.removed = removed.data();
  for (auto _ : state) benchmark::DoNotOptimize(attention_cpu(q, k, v, {offsets, classes}, request));
  count_flops(state, 4.0 * static_cast<double>(positions * positions * heads * width));
}
BENCHMARK(attention_block)
    ->ArgsProduct({{0, 1}, {168, 512, 2048}, {0, 1, 2, 3}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

void norm(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const at::Tensor x = at::randn({512, 4096}).to(type), weight = at::randn({4096}).to(type);
  for (auto _ : state) benchmark::DoNotOptimize(rms_norm(Backend::cpu, x, weight, 1e-5));
  state.SetBytesProcessed(state.iterations() * 2 * x.numel() * static_cast<std::int64_t>(x.element_size()));
}
BENCHMARK(norm)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace sinkscope
