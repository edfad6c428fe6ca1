#include "cli/speed.h"

#include <sinkscope/llada_sampler.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <optional>
#include <random>

#include "model/flops.h"
#include "ops/ceiling.h"
#include "ops/linear.h"

namespace sinkscope {
namespace {

constexpr std::size_t index_of(Work work) { return static_cast<std::size_t>(work); }

// An id that stands for the mask where the model names none: time does not depend on which it is.
std::int32_t mask_id_of(const ModelConfig& config) {
  return static_cast<std::int32_t>(config.mask_id.value_or(config.head_rows - 1));
}

// Random ids, none of them the mask.
std::vector<std::int32_t> random_prompt(const ModelConfig& config, std::int64_t length, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int32_t> ids;
  while (static_cast<std::int64_t>(ids.size()) < length) {
    const auto id = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(config.head_rows));
    if (id != mask_id_of(config) || config.head_rows == 1) ids.push_back(id);
  }
  return ids;
}

TokenBatch batch_of(const std::vector<std::int32_t>& prompt, std::int64_t masked, std::int32_t mask_id) {
  TokenBatch batch;
  batch.ids = prompt;
  batch.query_class.assign(prompt.size(), static_cast<std::uint8_t>(QueryClass::prompt));
  batch.ids.resize(prompt.size() + static_cast<std::size_t>(masked), mask_id);
  batch.query_class.resize(batch.ids.size(), static_cast<std::uint8_t>(QueryClass::masked));
  batch.offsets.push_back(batch.tokens());
  return batch;
}

// Every row's most likely token and its probability, as `run` wants them of masked rows.
void forward_with_whole_head(const Transformer& model, const TokenBatch& batch, Capture capture,
                             ForwardWorkspace& workspace) {
  model.forward({.tokens = batch, .head = Head::vocabulary, .capture = capture}, workspace);
}

// sample_llada with a single step: it fills all masks at once, at the cost of any other step.
void denoising_step(const Transformer& model, const std::vector<std::int32_t>& prompt, std::int64_t masked) {
  LladaOptions options;
  options.gen_len = options.block_len = masked;
  options.steps = 1;
  options.mask_id = mask_id_of(model.config());
  const std::vector<SampleRequest> requests{{prompt, 0}};
  sample_llada(model, requests, options, [](std::size_t, const StepRecord&) {});
}

std::vector<WeightSize> layer_weights(const ModelConfig& config) {
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  return {{query_width, config.width},     {key_width, config.width},        {key_width, config.width},
          {config.width, query_width},     {config.mlp_width, config.width}, {config.mlp_width, config.width},
          {config.width, config.mlp_width}};
}

double peak_resident_mb() {
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024 * 1e-6;  // Linux counts in KiB
}

// The next length shall not report the memory of this one's ceiling. Where the system does not take it, it
// does.
void forget_peak() { std::ofstream("/proc/self/clear_refs") << "5"; }

double median(std::vector<double> values) {
  const std::size_t half = values.size() / 2;
  std::sort(values.begin(), values.end());
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class Rounds {
 public:
  Rounds(const Transformer& model, const SpeedOptions& options)
      : model_(model),
        options_(options),
        masked_(options.positions / 2),
        prompt_(random_prompt(model.config(), options.positions - masked_, options.seed)),
        batch_(batch_of(prompt_, masked_, mask_id_of(model.config()))) {}

  SpeedReport measure() {
    report_.positions = options_.positions;
    report_.masked = masked_;
    count_flops();
    // The model's memory is looked at before the ceiling's weights are there.
    for (const Work work : all_work)
      if (work != Work::ceiling) timed(0, work);
    report_.peak_resident_mb = peak_resident_mb();
    make_ceiling();
    timed(0, Work::ceiling);
    for (std::int64_t round = 1; round <= options_.rounds; ++round)
      for (const Work work : all_work) report_.rounds[index_of(work)].push_back(timed(round, work));
    for (const Work work : all_work) report_.seconds[index_of(work)] = median(report_.rounds[index_of(work)]);
    return report_;
  }

 private:
  void count_flops() {
    const ModelConfig& config = model_.config();
    const ForwardFlops all = forward_flops(config, options_.positions, options_.positions);
    report_.flops.fill(all.total());
    report_.flops[index_of(Work::ceiling)] = all.projections + all.mlp + all.head;
    report_.flops[index_of(Work::step)] = forward_flops(config, options_.positions, masked_).total();
    for (const double flops : report_.flops) round_flops_ += flops;
  }

  void make_ceiling() {
    const ModelConfig& config = model_.config();
    ceiling_.emplace(product_type(model_.dtype(), model_.weight_format() == WeightFormat::int8),
                     options_.positions, layer_weights(config), config.layers,
                     WeightSize{config.head_rows, config.width});
    report_.ceiling_type = ceiling_->type();
  }

  void run(Work work) {
    switch (work) {
      case Work::ceiling:
        return ceiling_->run();
      case Work::plain:
        return forward_with_whole_head(model_, batch_, Capture::none, workspace_);
      case Work::columns:
        return forward_with_whole_head(model_, batch_, Capture::columns, workspace_);
      case Work::full:
        return forward_with_whole_head(model_, batch_, Capture::full, workspace_);
      case Work::step:
        return denoising_step(model_, prompt_, masked_);
    }
  }

  double timed(std::int64_t round, Work work) {
    const auto start = std::chrono::steady_clock::now();
    run(work);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    done_flops_ += report_.flops[index_of(work)];
    const double all = round_flops_ * static_cast<double>(options_.rounds + 1);
    if (options_.progress) options_.progress(done_flops_ / all, round, work, seconds);
    return seconds;
  }

  const Transformer& model_;
  const SpeedOptions& options_;
  std::int64_t masked_;
  std::vector<std::int32_t> prompt_;
  TokenBatch batch_;
  ForwardWorkspace workspace_;
  std::optional<ProductCeiling> ceiling_;
  SpeedReport report_;
  double round_flops_ = 0;
  double done_flops_ = 0;
};

}  // namespace

std::string_view name_of(Work work) {
  constexpr std::array<std::string_view, all_work.size()> names{"ceiling", "plain", "columns", "full",
                                                                "step"};
  return names[index_of(work)];
}

double SpeedReport::gflops(Work work) const { return flops[index_of(work)] * 1e-9 / seconds[index_of(work)]; }

double SpeedReport::share_of_ceiling(Work work) const { return gflops(work) / gflops(Work::ceiling); }

double SpeedReport::tokens_per_second(Work work) const {
  return static_cast<double>(positions) / seconds[index_of(work)];
}

double SpeedReport::overhead(Work work) const {
  return seconds[index_of(work)] / seconds[index_of(Work::plain)] - 1;
}

SpeedReport measure_speed(const Transformer& model, const SpeedOptions& options) {
  const SpeedReport report = Rounds(model, options).measure();
  forget_peak();
  return report;
}

}  // namespace sinkscope
