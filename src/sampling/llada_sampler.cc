#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include <algorithm>

#include "sampling/denoising_batch.h"
#include "sampling/prediction.h"
#include "sampling/schedule.h"

namespace sinkscope {
namespace {

class LladaRule : public DenoisingRule {
 public:
  LladaRule(const LladaOptions& options, std::int64_t vocabulary, at::ScalarType dtype, std::size_t samples)
      : options_(options), vocabulary_(vocabulary), dtype_(dtype), states_(samples) {}

  PassPlan plan(std::size_t number, const DenoisingSample& sample) override;
  std::int64_t source(std::int64_t position, const PassPlan& /*plan*/) const override { return position; }
  Head head() const override { return options_.temperature > 0 ? Head::none : Head::vocabulary; }
  VocabularyOptions vocabulary() const override { return vocabulary_options(options_); }
  void predict(std::size_t number, DenoisingSample& sample, const PassPlan& plan,
               PredictedLogits& logits) override;
  std::vector<std::uint8_t> candidates(std::size_t number, const DenoisingSample& sample) const override;
  void open(std::size_t number, DenoisingSample& sample) override;

 private:
  struct State {
    std::int64_t block = 0;
    std::int64_t step = 0;                    // in the block
    std::vector<std::int64_t> schedule = {};  // of the block
  };

  std::int64_t blocks() const { return options_.gen_len / options_.block_len; }
  std::int64_t steps_per_block() const { return options_.steps / blocks(); }
  std::int64_t block_begin(const State& state, const DenoisingSample& sample) const {
    return sample.prompt_length + state.block * options_.block_len;
  }
  std::int64_t block_end(const State& state, const DenoisingSample& sample) const {
    return block_begin(state, sample) + options_.block_len;
  }
  bool is_masked(const DenoisingSample& sample, std::int64_t i) const {
    return sample.ids[static_cast<std::size_t>(i)] == options_.mask_id;
  }
  Opened choose(std::size_t number, const DenoisingSample& sample) const;
  bool block_ends(const State& state, const DenoisingSample& sample, bool filled_any) const;
  void predict_noisily(DenoisingSample& sample, const PassPlan& plan, PredictedLogits& logits) const;

  const LladaOptions& options_;
  std::int64_t vocabulary_;
  at::ScalarType dtype_;
  std::vector<State> states_;
};

PassPlan LladaRule::plan(std::size_t number, const DenoisingSample& sample) {
  State& state = states_[number];
  const std::int64_t begin = block_begin(state, sample), end = block_end(state, sample);
  if (state.step == 0) {
    const auto masks =
        static_cast<std::int64_t>(masked_positions(sample, options_.mask_id, begin, end).size());
    state.schedule = transfer_schedule(masks, steps_per_block());
  }
  PassPlan plan{0, sample.length(), {}, state.step == 0};
  if (options_.cache != CacheMode::none && state.step > 0) {
    plan.first = begin;
    if (options_.cache == CacheMode::dual) plan.last = end;
  }
  // The originals record a prediction for every mask; the quick ways do without those that cannot be opened.
  plan.predicted =
      masked_positions(sample, options_.mask_id, plan.first, options_.fast() ? end : sample.length());
  return plan;
}

void LladaRule::predict(std::size_t /*number*/, DenoisingSample& sample, const PassPlan& plan,
                        PredictedLogits& logits) {
  if (options_.temperature > 0) {
    predict_noisily(sample, plan, logits);
  } else {
    for (std::size_t i = 0; i < plan.predicted.size(); ++i)
      set_prediction(sample, plan.predicted[i],
                     [&] { return prediction_of(logits.rows(), logits.row(i), options_, dtype_); });
  }
  if (options_.remasking != Remasking::random) return;
  std::vector<float> uniform(static_cast<std::size_t>(plan.last - plan.first));
  sample.random.fill(uniform);
  std::copy(uniform.begin(), uniform.end(), sample.confidence.begin() + plan.first);
}

// Noise is drawn for all computed positions, masked or not, in order: that is the stream of the original,
// which draws for the whole tensor of logits.
void LladaRule::predict_noisily(DenoisingSample& sample, const PassPlan& plan,
                                PredictedLogits& logits) const {
  std::vector<double> noise(static_cast<std::size_t>(vocabulary_));
  std::size_t next = 0;
  for (std::int64_t i = plan.first; i < plan.last; ++i) {
    sample.random.fill(noise);
    if (next == plan.predicted.size() || plan.predicted[next] != i) continue;
    set_prediction(sample, i,
                   [&] { return predict_with_noise(logits.logits(next), noise, options_, dtype_); });
    ++next;
  }
}

// Masked positions before the block's end; also those that earlier blocks and the prompt left, where they
// were predicted.
std::vector<std::uint8_t> LladaRule::candidates(std::size_t number, const DenoisingSample& sample) const {
  std::vector<std::uint8_t> result(sample.ids.size(), 0);
  for (std::int64_t i = 0; i < block_end(states_[number], sample); ++i)
    if (is_masked(sample, i) && sample.proposed[static_cast<std::size_t>(i)] >= 0)
      result[static_cast<std::size_t>(i)] = 1;
  return result;
}

Opened LladaRule::choose(std::size_t number, const DenoisingSample& sample) const {
  const State& state = states_[number];
  const std::vector<std::uint8_t> candidate = candidates(number, sample);
  if (options_.threshold) return open_confident(sample.confidence, candidate, *options_.threshold);
  return open_most_confident(sample.confidence, candidate,
                             state.schedule[static_cast<std::size_t>(state.step)]);
}

// The quick ways leave a block when nothing in it is left to do, or nothing more would be done.
bool LladaRule::block_ends(const State& state, const DenoisingSample& sample, bool filled_any) const {
  const bool steps_are_over = state.step == steps_per_block();
  if (!options_.fast()) return steps_are_over;
  const bool full =
      masked_positions(sample, options_.mask_id, block_begin(state, sample), block_end(state, sample))
          .empty();
  return full || (options_.threshold ? !filled_any : steps_are_over);
}

void LladaRule::open(std::size_t number, DenoisingSample& sample) {
  State& state = states_[number];
  const Opened opened = choose(number, sample);
  bool filled_any = false;
  for (const std::int64_t i : opened.positions) {
    sample.ids[static_cast<std::size_t>(i)] = sample.proposed[static_cast<std::size_t>(i)];
    filled_any = filled_any || !is_masked(sample, i);
  }
  sample.result.confidence_ties += opened.ties;
  ++state.step;
  if (!block_ends(state, sample, filled_any)) return;
  state = {state.block + 1};
  sample.finished = state.block == blocks();
}

}  // namespace

std::vector<SampleResult> sample_llada(const Transformer& model, std::span<const SampleRequest> samples,
                                       const LladaOptions& options, const StepObserver& observer) {
  validate(options);
  LladaRule rule(options, model.config().head_rows, model.dtype(), samples.size());
  return denoise(model, samples, options, options.cfg, rule, observer);
}

}  // namespace sinkscope
