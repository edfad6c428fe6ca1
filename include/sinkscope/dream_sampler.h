// Dream's sampler: every step opens some of all masked positions, on a schedule of time steps; and
// Fast-dLLM's ways to need fewer and shorter ones.
#pragma once

#include <sinkscope/denoising.h>
#include <sinkscope/transformer.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sinkscope {

/// What ranks the masked positions.
enum class DreamAlgorithm {
  origin,        ///< nothing: each is opened with probability 1 - s/t
  maskgit_plus,  ///< the probability of its token
  topk_margin,   ///< the largest probability minus the second
  entropy,       ///< sum p ln(p + 1e-10), the negative entropy
};

/// The distribution that confidence is taken of.
enum class ConfidenceSource {
  tempered,    ///< after temperature, top_p and top_k, as the original has it
  untempered,  ///< before the temperature, over the ids that top_p and top_k leave
};

/// Names follow the command line.
struct DreamOptions : DenoisingOptions {
  DreamAlgorithm alg = DreamAlgorithm::origin;
  double alg_temp = 0;     ///< above 0 the positions are drawn, from softmax(confidence / alg_temp)
  double top_p = 1;        ///< 1: off
  std::int64_t top_k = 0;  ///< 0: off
  double eps = 1e-3;       ///< where the time steps end
  ConfidenceSource confidence_from = ConfidenceSource::tempered;
};

/// Throws UsageError naming the option. Needs no model.
void validate(const DreamOptions& options);

/// Fills all samples in one ragged batch; results as sample_llada(). The model's logits at position j predict
/// position j + 1. Time steps, their ratio and the number of positions to open are float32, truncated as the
/// original does.
///
/// Draws of a sample come in this order from one stream of torch.rand on the CPU: `origin` a float32 for each
/// masked position; one double for each token drawn (temperature > 0), by inversion of the cumulative float32
/// probabilities; with alg_temp one double for each position of the row, top-k of confidence / alg_temp -
/// ln(-ln(1 - U)).
///
/// With a cache or a threshold it goes block by block as Fast-dLLM does (steps over the number of blocks
/// each); a threshold alone leaves one block, and its budget of masks / steps positions a step.
std::vector<SampleResult> sample_dream(const Transformer& model, std::span<const SampleRequest> samples,
                                       const DreamOptions& options, const StepObserver& observer = {});

}  // namespace sinkscope
