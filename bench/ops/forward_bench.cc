// The operations of a block on the shapes of LLaDA-8B. GFLOP/s counts two operations per multiply-add.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>

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

void norm(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const at::Tensor x = at::randn({512, 4096}).to(type), weight = at::randn({4096}).to(type);
  for (auto _ : state) benchmark::DoNotOptimize(rms_norm(Backend::cpu, x, weight, 1e-5));
  state.SetBytesProcessed(state.iterations() * 2 * x.numel() * static_cast<std::int64_t>(x.element_size()));
}
BENCHMARK(norm)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace sinkscope
