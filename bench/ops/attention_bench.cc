// Attention on heads of 128, beside what oneDNN makes of the same number of operations in one large product.
// Compare within one run: --benchmark_enable_random_interleaving=true takes the cases in turns.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <dnnl.h>

#include "ops/attention.h"

namespace sinkscope {
namespace {

constexpr std::int64_t width = 128;

void count_flops(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

// What is looked at.
enum Sight : std::int64_t { nothing, columns, full, removed };

// arguments: storage (0 float32, 1 bfloat16, 2 bfloat16 in pairs), positions, heads, Sight
void attention_block(benchmark::State& state) {
  const at::ScalarType type = state.range(0) == 0 ? at::kFloat : at::kBFloat16;
  const std::int64_t positions = state.range(1), heads = state.range(2), sight = state.range(3);
  CpuKernels kernels = cpu_kernels();
  if (state.range(0) == 2) kernels.attention_bf16 = kernels.attention_bf16_pairs;
  const auto random = [&] { return at::randn({positions, heads, width}).to(type); };
  const at::Tensor q = random(), k = random(), v = random();
  const std::vector<std::int64_t> offsets{0, positions};
  const std::vector<std::uint8_t> classes(static_cast<std::size_t>(positions), 2);
  std::vector<std::uint8_t> gone(static_cast<std::size_t>(heads * positions), 0);
  for (std::size_t i = 0; i < gone.size(); i += 37) gone[i] = 1;
  AttentionRequest request;
  request.columns = sight != nothing;
  request.statistics = sight == full;
  if (sight == removed) request.removed = gone.data();
  const AttentionLayout layout{offsets, classes};
  AttentionObservation seen = prepare_observation(heads, layout, request);
  begin_observation(layout, request, seen);
  at::Tensor output = at::empty({positions, heads * width}, q.options());
  for (auto _ : state) attention_cpu(kernels, q, k, v, layout, request, output, seen);
  count_flops(state, 4.0 * static_cast<double>(positions * positions * heads * width));
}
BENCHMARK(attention_block)
    ->ArgsProduct({{0, 1}, {168, 512, 2048, 4096}, {8, 32}, {nothing, columns, full, removed}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The ceiling: a product of 512 rows with a square matrix of 4096.
void product_ceiling(benchmark::State& state) {
  constexpr std::int64_t rows = 512, size = 4096;
  const at::Tensor a = at::randn({rows, size}), b = at::randn({size, size}), c = at::empty({rows, size});
  for (auto _ : state)
    dnnl_sgemm('N', 'T', rows, size, size, 1.0F, a.data_ptr<float>(), size, b.data_ptr<float>(), size, 0.0F,
               c.data_ptr<float>(), size);
  count_flops(state, 2.0 * static_cast<double>(rows * size * size));
}
BENCHMARK(product_ceiling)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace sinkscope
