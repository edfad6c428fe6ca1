#include <sinkscope/dream_sampler.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sampling/denoising_batch.h"
#include "sampling/prediction.h"
#include "sampling/schedule.h"
#include "sampling/token_distribution.h"

namespace sinkscope {
namespace {

// Where a sample stands. Without blocks the whole generation is one.
struct DreamState {
  std::int64_t block = 0;
  std::int64_t step = 0;     // in the block
  std::int64_t steps = 0;    // that the block may take; a threshold may extend them
  std::int64_t carried = 0;  // positions that the budget had and the threshold refused
  std::int64_t masks_at_start = 0;
};

class DreamRule : public DenoisingRule {
 public:
  DreamRule(const DreamOptions& options, at::ScalarType dtype, std::size_t samples);

  PassPlan plan(std::size_t number, const DenoisingSample& sample) override;
  // The first computed position has no predictor among the computed ones and keeps its own logits.
  std::int64_t source(std::int64_t position, const PassPlan& plan) const override {
    return position > plan.first ? position - 1 : position;
  }
  Head head() const override { return Head::none; }
  void predict(std::size_t number, DenoisingSample& sample, const PassPlan& plan,
               PredictedLogits& logits) override;
  std::vector<std::uint8_t> candidates(std::size_t number, const DenoisingSample& sample) const override;
  void open(std::size_t number, DenoisingSample& sample) override;

 private:
  bool in_blocks() const { return options_.cache != CacheMode::none; }
  std::int64_t blocks() const { return in_blocks() ? options_.gen_len / options_.block_len : 1; }
  std::int64_t block_begin(const DreamState& state, const DenoisingSample& sample) const {
    return in_blocks() ? sample.prompt_length + state.block * options_.block_len : 0;
  }
  std::int64_t block_end(const DreamState& state, const DenoisingSample& sample) const {
    return in_blocks() ? block_begin(state, sample) + options_.block_len : sample.length();
  }
  bool ranks() const { return options_.alg != DreamAlgorithm::origin || options_.threshold; }
  Prediction predict_token(std::span<const float> logits, double uniform) const;
  double confidence_of(std::span<const float> logits, std::int32_t token) const;
  std::vector<double> draw_uniforms(DenoisingSample& sample, std::size_t count) const;
  void keep_opened(DenoisingSample& sample, const DreamState& state,
                   std::vector<std::int64_t>& positions) const;
  Opened choose(std::size_t number, DenoisingSample& sample);
  Opened choose_by_threshold(DreamState& state, const DenoisingSample& sample,
                             const std::vector<std::uint8_t>& candidate) const;
  Opened draw_positions(DenoisingSample& sample, const std::vector<std::uint8_t>& candidate,
                        std::int64_t count) const;
  bool block_ends(DreamState& state, const DenoisingSample& sample, bool filled_any) const;

  const DreamOptions& options_;
  at::ScalarType dtype_;
  std::vector<float> times_;
  std::vector<DreamState> states_;
};

// What a thread works in; a vocabulary is long.
struct Scratch {
  std::vector<float> filtered;
  std::vector<float> untempered;
  std::vector<double> probability;
};
Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

DreamRule::DreamRule(const DreamOptions& options, at::ScalarType dtype, std::size_t samples)
    : options_(options),
      dtype_(dtype),
      times_(time_steps(std::max<std::int64_t>(1, options.steps / blocks()), options.eps)),
      states_(samples) {}

PassPlan DreamRule::plan(std::size_t number, const DenoisingSample& sample) {
  DreamState& state = states_[number];
  const std::int64_t begin = block_begin(state, sample), end = block_end(state, sample);
  if (state.step == 0) {
    state.steps = options_.steps / blocks();
    state.masks_at_start =
        static_cast<std::int64_t>(masked_positions(sample, options_.mask_id, begin, end).size());
  }
  PassPlan plan{0, sample.length(), {}};
  if (in_blocks() && state.step > 0) {
    plan.first = begin;
    if (options_.cache == CacheMode::dual) plan.last = end;
  }
  // The first step of a block opens its first position only, whose predictor lies before the block.
  const std::int64_t last = in_blocks() && state.step == 0 ? begin + 1 : end;
  plan.predicted = masked_positions(sample, options_.mask_id, begin, last);
  return plan;
}

std::vector<double> DreamRule::draw_uniforms(DenoisingSample& sample, std::size_t count) const {
  std::vector<double> uniform(count, 0);
  if (options_.temperature > 0) sample.random.fill(uniform);
  return uniform;
}

// `origin` decides what to open before it looks at any token.
void DreamRule::keep_opened(DenoisingSample& sample, const DreamState& state,
                            std::vector<std::int64_t>& positions) const {
  const float share = opened_share(times_, state.step);
  std::vector<float> uniform(positions.size());
  sample.random.fill(uniform);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < uniform.size(); ++i)
    if (uniform[i] < share) positions[kept++] = positions[i];
  positions.resize(kept);
}

void DreamRule::predict(std::size_t number, DenoisingSample& sample, const PassPlan& plan,
                        PredictedLogits& logits) {
  std::vector<std::int64_t> positions = plan.predicted;
  if (!ranks()) keep_opened(sample, states_[number], positions);
  const std::vector<double> uniform = draw_uniforms(sample, positions.size());
  logits.for_each([&](std::size_t i, std::span<const float> row) {
    const auto found = std::lower_bound(positions.begin(), positions.end(), plan.predicted[i]);
    if (found == positions.end() || *found != plan.predicted[i]) return;
    const double own = uniform[static_cast<std::size_t>(found - positions.begin())];
    set_prediction(sample, *found, [&] { return predict_token(row, own); });
  });
}

Prediction DreamRule::predict_token(std::span<const float> logits, double uniform) const {
  constexpr float removed = -std::numeric_limits<float>::infinity();
  auto& [filtered, untempered, probability] = thread_scratch();
  filtered.assign(logits.begin(), logits.end());
  if (options_.forbid_mask && static_cast<std::size_t>(options_.mask_id) < filtered.size())
    filtered[static_cast<std::size_t>(options_.mask_id)] = removed;
  if (options_.confidence_from == ConfidenceSource::untempered) untempered = filtered;
  filter_logits(filtered, {options_.temperature, options_.top_p, options_.top_k});
  Prediction prediction;
  if (options_.temperature > 0) {
    softmax(filtered, probability);
    prediction.token = draw_by_inversion(probability, uniform);
  } else {
    prediction.token = largest_index(filtered);
  }
  prediction.confidence = std::numeric_limits<double>::quiet_NaN();
  if (!ranks()) return prediction;
  if (options_.confidence_from == ConfidenceSource::untempered) {
    for (std::size_t i = 0; i < filtered.size(); ++i)
      if (filtered[i] == removed) untempered[i] = removed;
    prediction.confidence = confidence_of(untempered, prediction.token);
  } else {
    prediction.confidence = confidence_of(filtered, prediction.token);
  }
  return prediction;
}

double DreamRule::confidence_of(std::span<const float> logits, std::int32_t token) const {
  std::vector<double>& probability = thread_scratch().probability;
  softmax(logits, probability);
  const auto as_asked = [&](double value) { return rounded(value, options_.confidence, dtype_); };
  if (options_.threshold) return as_asked(probability[static_cast<std::size_t>(token)]);
  if (options_.alg == DreamAlgorithm::entropy) {
    double sum = 0;
    for (const double p : probability) {
      const double q = as_asked(p);
      sum += q * std::log(q + 1e-10);
    }
    return as_asked(sum);
  }
  if (options_.alg == DreamAlgorithm::topk_margin && probability.size() > 1) {
    std::nth_element(probability.begin(), probability.begin() + 1, probability.end(), std::greater<>());
    return as_asked(as_asked(probability[0]) - as_asked(probability[1]));
  }
  return as_asked(probability[static_cast<std::size_t>(token)]);
}

std::vector<std::uint8_t> DreamRule::candidates(std::size_t /*number*/, const DenoisingSample& sample) const {
  std::vector<std::uint8_t> result(sample.ids.size(), 0);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = sample.ids[i] == options_.mask_id && sample.proposed[i] >= 0 ? 1 : 0;
  return result;
}

// The `count` largest of confidence / alg_temp - ln E, E = -ln(1 - U) with a U for every position of the row.
Opened DreamRule::draw_positions(DenoisingSample& sample, const std::vector<std::uint8_t>& candidate,
                                 std::int64_t count) const {
  std::vector<double> score(sample.ids.size());
  sample.random.fill(score);
  for (std::size_t i = 0; i < score.size(); ++i)
    score[i] = sample.confidence[i] / options_.alg_temp - std::log(-std::log1p(-score[i]));
  return {open_most_confident(score, candidate, count).positions, 0};
}

// Fast-dLLM's rule. Without a cache: masks / steps positions at a step at most, and what earlier steps left
// of that.
Opened DreamRule::choose_by_threshold(DreamState& state, const DenoisingSample& sample,
                                      const std::vector<std::uint8_t>& candidate) const {
  Opened sure = open_confident(sample.confidence, candidate, *options_.threshold);
  if (in_blocks()) return sure;
  const bool extended = state.step >= options_.steps;
  const std::int64_t fresh = extended ? 0 : state.masks_at_start / options_.steps;
  const std::int64_t budget = std::max<std::int64_t>(1, fresh + state.carried);
  const auto masks =
      static_cast<std::int64_t>(std::count(candidate.begin(), candidate.end(), std::uint8_t{1}));
  const auto opened = std::min({budget, masks, static_cast<std::int64_t>(sure.positions.size())});
  state.carried = std::min(budget, masks) - opened;
  return open_most_confident(sample.confidence, candidate, opened);
}

Opened DreamRule::choose(std::size_t number, DenoisingSample& sample) {
  DreamState& state = states_[number];
  const std::vector<std::uint8_t> candidate = candidates(number, sample);
  const auto masks =
      static_cast<std::int64_t>(std::count(candidate.begin(), candidate.end(), std::uint8_t{1}));
  const bool first_of_block = in_blocks() && state.step == 0;
  if (first_of_block || !ranks()) return open_most_confident(sample.confidence, candidate, masks);
  if (options_.threshold) return choose_by_threshold(state, sample, candidate);
  const std::int64_t count = opened_masks(masks, opened_share(times_, state.step));
  if (count > 0 && options_.alg_temp > 0) return draw_positions(sample, candidate, count);
  return open_most_confident(sample.confidence, candidate, count);
}

bool DreamRule::block_ends(DreamState& state, const DenoisingSample& sample, bool filled_any) const {
  const bool full =
      masked_positions(sample, options_.mask_id, block_begin(state, sample), block_end(state, sample))
          .empty();
  if (!options_.fast()) return state.step == state.steps;
  if (!options_.threshold) return full || state.step == state.steps;
  return full || (state.step > 1 && !filled_any);
}

void DreamRule::open(std::size_t number, DenoisingSample& sample) {
  DreamState& state = states_[number];
  const Opened opened = choose(number, sample);
  bool filled_any = false;
  for (const std::int64_t i : opened.positions) {
    std::int32_t& id = sample.ids[static_cast<std::size_t>(i)];
    id = sample.proposed[static_cast<std::size_t>(i)];
    filled_any = filled_any || id != options_.mask_id;
  }
  if (ranks()) sample.result.confidence_ties += opened.ties;
  ++state.step;
  if (!block_ends(state, sample, filled_any)) return;
  state = {state.block + 1};
  sample.finished = state.block == blocks();
}

}  // namespace

std::vector<SampleResult> sample_dream(const Transformer& model, std::span<const SampleRequest> samples,
                                       const DreamOptions& options, const StepObserver& observer) {
  validate(options);
  DreamRule rule(options, model.dtype(), samples.size());
  return denoise(model, samples, options, /*guidance=*/0, rule, observer);
}

}  // namespace sinkscope
