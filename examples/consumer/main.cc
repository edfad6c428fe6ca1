// The library in a program of one's own: fills eight masks and prints the largest column sum of every step.
#include <sinkscope/llada_sampler.h>

#include <cstdio>
#include <memory>

int main(int count, char** arguments) {
  using namespace sinkscope;
  const auto checkpoint = std::make_shared<const Checkpoint>(
      Checkpoint::open(locate_model(count > 1 ? arguments[1] : "tiny-llada")));
  const Transformer model(checkpoint, {});
  LladaOptions options;
  options.mask_id = static_cast<std::int32_t>(checkpoint->config().mask_id.value());
  options.gen_len = options.steps = options.block_len = 8;
  const std::vector<SampleRequest> requests{{{3, 4, 5}, 0}};
  const auto results = sample_llada(model, requests, options, [](std::size_t, const StepRecord& step) {
    std::printf("step %d: largest column sum %.2f\n", static_cast<int>(step.step),
                step.column_sum.max().item<double>());
  });
  for (const std::int32_t id : results[0].ids) std::printf("%d ", id);
  std::printf("\n");
}
