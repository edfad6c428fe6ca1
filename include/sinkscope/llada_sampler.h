// LLaDA's and MMaDA's sampler: semi-autoregressive blocks, filled over a fixed number of denoising steps.
#pragma once

#include <sinkscope/observation.h>
#include <sinkscope/sinks.h>
#include <sinkscope/transformer.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sinkscope {

/// What ranks the masked positions.
enum class Remasking {
  low_confidence,  ///< the probability of the predicted token
  random,          ///< a uniform draw
};

/// Arithmetic of the confidence's softmax.
enum class ConfidencePrecision {
  model,  ///< the logits' own dtype: in bfloat16 many confidences round to 1 and tie
  f32,
  f64,
};

/// Names follow the command line.
struct LladaOptions {
  std::int64_t gen_len = 128;   ///< tokens to generate
  std::int64_t steps = 128;     ///< denoising steps in all blocks together
  std::int64_t block_len = 32;  ///< tokens of a block; blocks are filled from left to right
  double temperature = 0;       ///< 0: arg-max; else Gumbel noise in float64
  double cfg = 0;               ///< classifier-free guidance w: logits = u + (w + 1)(c - u); 0 = off
  Remasking remasking = Remasking::low_confidence;
  ConfidencePrecision confidence = ConfidencePrecision::f64;
  bool logits_eos_inf = false;          ///< the end token is never predicted
  bool confidence_eos_eot_inf = false;  ///< a predicted end token or end of turn has confidence 0
  bool forbid_mask = false;             ///< the mask id is never predicted
  std::int32_t mask_id = 0;
  std::optional<std::int32_t> eos_id;  ///< needed by the two end-token options
  std::optional<std::int32_t> eot_id;  ///< `<|eot_id|>` where the tokenizer has one
  InterventionOptions sinks;           ///< top_k = 0: none
  Capture capture = Capture::columns;  ///< what the observer gets to see
  std::vector<LayerHead> maps;         ///< full attention maps of these
};

/// Throws UsageError naming the option: gen_len must be a multiple of block_len and steps of the number of
/// blocks (the nearest values that work are named), temperature and cfg at least 0, and so on. Needs no
/// model.
void validate(const LladaOptions& options);

/// One denoising step of one sample, S = prompt + gen_len. Spans and tensors are valid during the call only;
/// tensors are float32 on the CPU, contiguous, undefined where Capture does not ask for them. With guidance
/// these are the conditional row's.
struct StepRecord {
  std::int64_t step = 0;
  std::span<const std::int32_t> state;     // [S] input ids of the forward
  std::span<const std::int32_t> proposed;  // [S] predicted id at masked positions, else -1
  std::span<const float> confidence;       // [S] as ranked; NaN where not a candidate
  at::Tensor column_sum;                   // [3, L, H, S] raw, by query class
  std::span<const std::uint8_t> removed;   // [L, H, S]; empty without an intervention
  at::Tensor diagonal;                     // [L, H, S]
  at::Tensor row_entropy;                  // [3, L, H]
  at::Tensor row_max;                      // [3, L, H]
  at::Tensor value_norm;                   // [L, Hkv, S]
  std::map<LayerHead, at::Tensor> maps;    // [S, S]
};

struct SampleRequest {
  std::vector<std::int32_t> prompt;  // may be empty; the mask id in it is infilled
  std::uint64_t seed = 0;            // of this sample's own generator
};

struct SampleResult {
  std::vector<std::int32_t> ids;    // [S] the final row
  std::int64_t steps = 0;           // denoising steps
  std::int64_t forward_passes = 0;  // rows of a batch and of guidance count as one
  std::int64_t masks_left = 0;      // masks in the final row: predicted mask ids stay masks
  std::int64_t confidence_ties =
      0;  // candidates left masked that tied with the last one opened (lower index wins)
  std::int64_t empty_rows = 0;  // attention rows whose keys were all removed
};

using StepObserver = std::function<void(std::size_t sample, const StepRecord&)>;

/// Fills all samples in one ragged batch. Each draws from its own generator, so that a sample's tokens depend
/// on its prompt, seed and options alone. Deterministic, ties go to the lowest index; the streams are those
/// of torch.rand on the CPU: per step float64 [S, V] when temperature > 0, then float32 [S] when remasking is
/// random. Throws Error when a logit is not finite; UsageError from validate() or for ids outside the model's
/// vocabulary.
std::vector<SampleResult> sample_llada(const Transformer& model, std::span<const SampleRequest> samples,
                                       const LladaOptions& options, const StepObserver& observer = {});

}  // namespace sinkscope
