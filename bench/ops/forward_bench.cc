// The operations of a block on the shapes of LLaDA-8B. GFLOP/s counts two operations per multiply-add.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <dnnl.h>

#include "ops/projection.h"
#include "ops/vocabulary_head.h"

namespace sinkscope {
namespace {

at::ScalarType type_of(std::int64_t index) { return index == 0 ? at::kFloat : at::kBFloat16; }

void count_flops(benchmark::State& state, double operations) {
  state.counters["GFLOP/s"] =
      benchmark::Counter(operations * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
}

ProductInput input_of(const Linear& linear, const at::Tensor& x) {
  ProductInput input;
  input.form = linear.input_form();
  input.values =
      at::empty(x.sizes(), x.options().dtype(input.form == InputForm::quantised ? at::kByte : at::kFloat));
  input.scale = at::empty({x.size(0)}, at::TensorOptions(at::kFloat));
  input.zero = at::empty({x.size(0)}, at::TensorOptions(at::kInt));
  prepare_input(Backend::cpu, x, input);
  return input;
}

// arguments: dtype, 8-bit weights or not, rows, in, out
void product(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const std::int64_t rows = state.range(2), in = state.range(3), out = state.range(4);
  const at::Tensor x = at::randn({rows, in}).to(type);
  const Linear layer(Backend::cpu, at::randn({out, in}).to(type),
                     {.dtype = type, .int8 = state.range(1) != 0});
  const ProductInput input = input_of(layer, x);
  const std::vector<std::int64_t> offsets{0, rows};
  const RowPlan plan = plan_rows(offsets);
  at::Tensor result = at::empty({rows, out}, x.options());
  for (auto _ : state) project({{&layer, &result}}, input, plan);
  count_flops(state, 2.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(product)
    ->ArgsProduct({{0, 1}, {0, 1}, {168, 512}, {4096}, {4096, 12288}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The same in one product that oneDNN packs and cuts itself: what can be had.
void whole_product(benchmark::State& state) {
  const std::int64_t rows = state.range(0), in = state.range(1), out = state.range(2);
  const at::Tensor x = at::randn({rows, in}), weight = at::randn({out, in});
  at::Tensor y = at::empty({rows, out});
  for (auto _ : state)
    dnnl_sgemm('N', 'T', rows, out, in, 1, x.data_ptr<float>(), in, weight.data_ptr<float>(), in, 0,
               y.data_ptr<float>(), out);
  count_flops(state, 2.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(whole_product)
    ->ArgsProduct({{168, 512}, {4096}, {4096, 12288}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

// The head with arg-max and probabilities. arguments: dtype, rows, vocabulary, exponentials in float64 or not
void head(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const std::int64_t rows = state.range(1), in = 4096, out = state.range(2);
  const at::Tensor x = at::randn({rows, in}).to(type);
  const Linear layer(Backend::cpu, at::randn({out, in}).to(type), {.dtype = type});
  const ProductInput input = input_of(layer, x);
  const std::vector<std::int64_t> offsets{0, rows};
  const RowPlan plan = plan_rows(offsets);
  VocabularyOptions options;
  options.in_float64 = state.range(3) != 0;
  for (auto _ : state) benchmark::DoNotOptimize(vocabulary_head(layer, input, plan, options));
  count_flops(state, 2.0 * static_cast<double>(rows * in * out));
}
BENCHMARK(head)->ArgsProduct({{0, 1}, {128}, {32768}, {0, 1}})->Unit(benchmark::kMillisecond)->UseRealTime();

void norm(benchmark::State& state) {
  const at::ScalarType type = type_of(state.range(0));
  const at::Tensor x = at::randn({512, 4096}).to(type), weight = at::randn({4096}).to(type);
  ProductInput normed;
  normed.values = at::empty_like(x);
  for (auto _ : state) prepare_normed(Backend::cpu, x, weight, 1e-5, normed);
  state.SetBytesProcessed(state.iterations() * 2 * x.numel() * static_cast<std::int64_t>(x.element_size()));
}
BENCHMARK(norm)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace sinkscope
