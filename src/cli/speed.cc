#include "cli/speed.h"

#include <sinkscope/dream_sampler.h>
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
#include "ops/read_bandwidth.h"

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

template <typename Options>
Options single_step(const Transformer& model, std::int64_t masked) {
  Options options;
  options.gen_len = options.block_len = masked;
  options.steps = 1;
  options.mask_id = mask_id_of(model.config());
  return options;
}

// The sampler with a single step: it fills all masks at once, at the cost of any other step.
void denoising_step(const Transformer& model, const std::vector<std::int32_t>& prompt, std::int64_t masked) {
  const std::vector<SampleRequest> requests{{prompt, 0}};
  const StepObserver observer = [](std::size_t, const StepRecord&) {};
  if (model.config().generation == Generation::shifted_masked)
    sample_dream(model, requests, single_step<DreamOptions>(model, masked), observer);
  else
    sample_llada(model, requests, single_step<LladaOptions>(model, masked), observer);
}

// One token at a time behind `positions` - 1 others whose keys and values are kept.
class NextToken {
 public:
  NextToken(const Transformer& model, std::int64_t positions, std::uint64_t seed)
      : model_(model),
        cache_(model.config(), model.dtype(), model.device(), {positions}),
        positions_(positions) {
    TokenBatch prompt = batch_of(random_prompt(model.config(), positions - 1, seed), 0, 0);
    const CachedTokens cached{&cache_, {0}, {0}};
    model.forward(
        {.tokens = prompt, .wanted = std::vector<std::int64_t>{}, .head = Head::none, .cached = &cached},
        workspace_);
    token_ = batch_of({0}, 0, 0);
  }
  void run() {
    const CachedTokens cached{&cache_, {0}, {positions_ - 1}};
    model_.forward(
        {.tokens = token_, .head = Head::vocabulary, .capture = Capture::columns, .cached = &cached},
        workspace_);
  }

 private:
  const Transformer& model_;
  KeyValueCache cache_;
  std::int64_t positions_;
  TokenBatch token_;
  ForwardWorkspace workspace_;
};

// With experts: those that work on a row at a time, each on all rows.
std::vector<WeightSize> layer_weights(const ModelConfig& config) {
  const std::int64_t query_width = config.heads * config.head_dim;
  const std::int64_t key_width = config.kv_heads * config.head_dim;
  std::vector<WeightSize> weights{{query_width, config.width},
                                  {key_width, config.width},
                                  {key_width, config.width},
                                  {config.width, query_width}};
  if (config.experts) weights.push_back({config.experts->count, config.width});
  for (std::int64_t e = 0; e < (config.experts ? config.experts->chosen : 1); ++e)
    weights.insert(weights.end(), {{config.mlp_width, config.width},
                                   {config.mlp_width, config.width},
                                   {config.width, config.mlp_width}});
  return weights;
}

// Of the matrices that a token passes through.
std::int64_t bytes_of_matrices(const Transformer& model) {
  const ModelConfig& config = model.config();
  std::int64_t elements = config.head_rows * config.width;
  for (const WeightSize& size : layer_weights(config)) elements += config.layers * size.out * size.in;
  return elements * (model.weight_format() == WeightFormat::int8
                         ? 1
                         : static_cast<std::int64_t>(c10::elementSize(model.dtype())));
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
        masked_(model.config().causal() ? 0 : options.positions / 2),
        prompt_(random_prompt(model.config(), options.positions - masked_, options.seed)),
        batch_(batch_of(prompt_, masked_, mask_id_of(model.config()))) {}

  SpeedReport measure() {
    report_.positions = options_.positions;
    report_.masked = masked_;
    count_flops();
    // The model's memory is looked at before the ceiling's weights are there.
    if (decodes()) next_token_.emplace(model_, options_.positions, options_.seed);
    for (const Work work : all_work)
      if (applies(work) && work != Work::ceiling && work != Work::read) timed(0, work);
    report_.peak_resident_mb = peak_resident_mb();
    make_ceiling();
    timed(0, Work::ceiling);
    for (std::int64_t round = 1; round <= options_.rounds; ++round)
      for (const Work work : all_work)
        if (applies(work)) report_.rounds[index_of(work)].push_back(timed(round, work));
    for (const Work work : all_work)
      if (applies(work)) report_.seconds[index_of(work)] = median(report_.rounds[index_of(work)]);
    return report_;
  }

 private:
  bool decodes() const { return model_.config().causal(); }
  bool applies(Work work) const { return work != Work::read || decodes(); }

  void count_flops() {
    const ModelConfig& config = model_.config();
    const ForwardFlops all = forward_flops(config, options_.positions, options_.positions);
    report_.flops.fill(all.total());
    report_.flops[index_of(Work::ceiling)] = all.projections + all.mlp + all.head;
    report_.flops[index_of(Work::read)] = 0;
    report_.flops[index_of(Work::step)] =
        decodes()
            ? all.total() - forward_flops(config, options_.positions - 1, options_.positions - 1).total()
            : forward_flops(config, options_.positions, masked_).total();
    for (const double flops : report_.flops) round_flops_ += flops;
  }

  void make_ceiling() {
    const ModelConfig& config = model_.config();
    ceiling_.emplace(product_type(model_.dtype(), model_.weight_format() == WeightFormat::int8),
                     options_.positions, layer_weights(config), config.layers,
                     WeightSize{config.head_rows, config.width});
    report_.ceiling_type = ceiling_->type();
    if (!decodes()) return;
    report_.weight_bytes = bytes_of_matrices(model_);
    read_.emplace(report_.weight_bytes);
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
      case Work::read:
        read_->run();
        return;
      case Work::step:
        if (decodes()) return next_token_->run();
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
  std::optional<ReadBandwidth> read_;
  std::optional<NextToken> next_token_;
  SpeedReport report_;
  double round_flops_ = 0;
  double done_flops_ = 0;
};

}  // namespace

std::string_view name_of(Work work) {
  constexpr std::array<std::string_view, all_work.size()> names{"ceiling", "plain", "columns",
                                                                "full",    "read",  "step"};
  return names[index_of(work)];
}

double SpeedReport::gflops(Work work) const { return flops[index_of(work)] * 1e-9 / seconds[index_of(work)]; }

double SpeedReport::share_of_ceiling(Work work) const { return gflops(work) / gflops(Work::ceiling); }

double SpeedReport::tokens_per_second(Work work) const {
  const bool one = work == Work::step && measured(Work::read);
  return (one ? 1 : static_cast<double>(positions)) / seconds[index_of(work)];
}

double SpeedReport::share_of_bandwidth() const {
  return seconds[index_of(Work::read)] / seconds[index_of(Work::step)];
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
