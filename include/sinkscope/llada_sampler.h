// LLaDA's and MMaDA's sampler: semi-autoregressive blocks, filled over a fixed number of denoising steps; and
// Fast-dLLM's ways to need fewer and shorter ones.
#pragma once

#include <sinkscope/denoising.h>
#include <sinkscope/transformer.h>

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace sinkscope {

/// What ranks the masked positions.
enum class Remasking {
  low_confidence,  ///< the probability of the predicted token
  random,          ///< a uniform draw
};

/// Names follow the command line. A temperature above 0 adds Gumbel noise in float64.
struct LladaOptions : DenoisingOptions {
  double cfg = 0;  ///< classifier-free guidance w: logits = u + (w + 1)(c - u); 0 = off
  Remasking remasking = Remasking::low_confidence;
  bool logits_eos_inf = false;          ///< the end token is never predicted
  bool confidence_eos_eot_inf = false;  ///< a predicted end token or end of turn has confidence 0
  std::optional<std::int32_t> eos_id;   ///< needed by the two end-token options
  std::optional<std::int32_t> eot_id;   ///< `<|eot_id|>` where the tokenizer has one
};

/// Throws UsageError naming the option. Needs no model.
void validate(const LladaOptions& options);

/// Fills all samples in one ragged batch. Each draws from its own generator, so that a sample's tokens depend
/// on its prompt, seed and options alone. Deterministic, ties go to the lowest index; the streams are those
/// of torch.rand on the CPU: per step float64 [computed positions, V] when temperature > 0, then float32
/// [computed positions] when remasking is random. Throws Error when a logit is not finite; UsageError from
/// validate() or for ids outside the model's vocabulary.
///
/// With a threshold or a cache a block ends when it holds no mask, or when a step fills none (a predicted
/// mask id leaves a mask); with a cache its first step computes all positions.
std::vector<SampleResult> sample_llada(const Transformer& model, std::span<const SampleRequest> samples,
                                       const LladaOptions& options, const StepObserver& observer = {});

}  // namespace sinkscope
