// A whole step of masked diffusion training of a small model with tied embeddings: forward, loss of the
// masked half of the positions, backward, clipping, AdamW. bench/eager_block.py --model times the same in
// eager PyTorch.
#include "ops/differentiable/adamw.h"
#include "ops/differentiable/cross_entropy.h"
#include "ops/differentiable/embedding.h"
#include "training_block.h"

namespace sinkscope {
namespace {

struct ModelShape {
  BlockShape block;
  std::int64_t layers, vocabulary;
};

constexpr ModelShape models[] = {{{256, 4, 768, 16, 256}, 6, 8192}, {{512, 8, 1536, 8, 512}, 8, 16384}};

struct Model {
  explicit Model(const ModelShape& s)
      : shape(s),
        table(weight(s.vocabulary, s.block.width)),
        last_norm(at::ones({s.block.width}).requires_grad_()) {
    for (std::int64_t i = 0; i < s.layers; ++i) blocks.emplace_back(s.block);
    add(table, 0.1);
    add(last_norm, 0);
    for (const Block& block : blocks)
      for (const at::Tensor& parameter : block.parameters()) add(parameter, parameter.dim() > 1 ? 0.1 : 0);
  }

  void add(const at::Tensor& parameter, double decay) {
    optimised.push_back({parameter, {}, at::zeros(parameter.sizes()), at::zeros(parameter.sizes()), decay});
  }

  at::Tensor loss(const at::Tensor& ids, const PredictedRows& predicted, std::int64_t way) const {
    const Backend backend = backend_of(way);
    at::Tensor x = embedding(backend, table, ids), update = at::zeros(x.sizes());
    for (const Block& block : blocks) std::tie(x, update) = block.run(x, update, way, {});
    const at::Tensor last = add_rms_norm(backend, x, update, last_norm, training_eps).normed;
    return cross_entropy(backend, last, table, predicted, precision_of(way)).loss;
  }

  void step(std::int64_t way) {
    std::vector<at::Tensor> gradients;
    for (AdamwParameter& p : optimised) {
      p.gradient = p.parameter.grad();
      gradients.push_back(p.gradient);
    }
    AdamwOptions options;
    options.gradient_scale = clipping_scale(gradient_norm(backend_of(way), gradients), 1);
    adamw_step(backend_of(way), optimised, options);
    for (AdamwParameter& p : optimised) {
      p.gradient.reset();
      p.parameter.mutable_grad().reset();
    }
  }

  ModelShape shape;
  at::Tensor table, last_norm;
  std::vector<Block> blocks;
  std::vector<AdamwParameter> optimised;
};

// arguments: Way, model
void training_step(benchmark::State& state) {
  use_all_processors(state.range(0));
  const ModelShape& shape = models[state.range(1)];
  const std::int64_t tokens = shape.block.batch * shape.block.positions;
  Model model(shape);
  const auto integers = at::TensorOptions(at::kLong);
  const at::Tensor ids = at::randint(0, shape.vocabulary, {tokens}, integers);
  const at::Tensor rows = at::arange(0, tokens, 2, integers);
  const PredictedRows predicted{rows, ids.index_select(0, rows),
                                at::full({tokens / 2}, 2.0 / static_cast<double>(tokens))};
  for (auto _ : state) {
    model.loss(ids, predicted, state.range(0)).backward();
    model.step(state.range(0));
  }
  count_flops(state, shape.block.flops() * static_cast<double>(shape.layers) +
                         3 * static_cast<double>(tokens * shape.vocabulary * shape.block.width));
}
BENCHMARK(training_step)
    ->ArgsProduct({{aten, fused_f32, fused_bf16}, {0, 1}})
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}  // namespace
}  // namespace sinkscope
