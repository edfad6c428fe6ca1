// Samples of masked diffusion models on their way from masks to text, in one ragged batch: forward passes,
// recording and intervention. What differs between samplers is a DenoisingRule.
#pragma once

#include <sinkscope/denoising.h>
#include <sinkscope/transformer.h>

#include <functional>
#include <span>
#include <vector>

#include "sampling/random_stream.h"

namespace sinkscope {

/// A sample as a rule sees it.
struct DenoisingSample {
  std::vector<std::int32_t> ids;
  std::vector<std::uint8_t> given;  // 1 where the prompt holds a token: what the unconditional row hides
  std::int64_t prompt_length = 0;
  RandomStream random;
  std::vector<std::int32_t> proposed = {};  // [S] of the current step, -1 where nothing was predicted
  std::vector<double> confidence = {};      // [S] of the current step, NaN likewise
  SampleResult result = {};
  bool finished = false;

  std::int64_t length() const { return static_cast<std::int64_t>(ids.size()); }
};

/// What the next forward pass does for one sample.
struct PassPlan {
  std::int64_t first = 0, last = 0;     // positions computed; all of them, or with a cache a part
  std::vector<std::int64_t> predicted;  // positions whose tokens are predicted, ascending
  bool begins_block = false;            // of a block the first
};

/// The logits behind a sample's predictions, in the order of PassPlan::predicted.
class PredictedLogits {
 public:
  virtual ~PredictedLogits() = default;
  /// Summed up by the head; only where DenoisingRule::head() says Head::vocabulary.
  virtual const VocabularyRows& rows() const = 0;
  virtual std::size_t row(std::size_t index) const = 0;
  /// [V] in float32, with guidance, forbidden ids not yet taken out. The caller may change them; two
  /// predictions that have one source have one span. Indices must ascend. Valid until the next call.
  virtual std::span<float> logits(std::size_t index) = 0;
  /// body(index, logits) for every prediction, on all threads; those of one source one after the other.
  virtual void for_each(const std::function<void(std::size_t index, std::span<float> logits)>& body) = 0;
};

/// How a sampler decides. One object serves all samples; what it remembers of one it keeps by the sample's
/// number.
class DenoisingRule {
 public:
  virtual ~DenoisingRule() = default;
  virtual PassPlan plan(std::size_t number, const DenoisingSample& sample) = 0;
  /// The position whose logits predict `position`.
  virtual std::int64_t source(std::int64_t position, const PassPlan& plan) const = 0;
  /// Head::vocabulary or Head::none.
  virtual Head head() const = 0;
  virtual VocabularyOptions vocabulary() const { return {}; }
  /// Fills `proposed` and `confidence` at the predicted positions.
  virtual void predict(std::size_t number, DenoisingSample& sample, const PassPlan& plan,
                       PredictedLogits& logits) = 0;
  /// 1 where a position may be opened now: whose confidence is recorded.
  virtual std::vector<std::uint8_t> candidates(std::size_t number, const DenoisingSample& sample) const = 0;
  /// Writes tokens into ids, counts ties, and sets `finished` after the last step.
  virtual void open(std::size_t number, DenoisingSample& sample) = 0;
};

/// Runs the rule until all samples are finished. guidance above 0: every sample has a second row that hides
/// its prompt.
std::vector<SampleResult> denoise(const Transformer& model, std::span<const SampleRequest> requests,
                                  const DenoisingOptions& options, double guidance, DenoisingRule& rule,
                                  const StepObserver& observer);

/// Positions in [first, last) that hold the mask id.
std::vector<std::int64_t> masked_positions(const DenoisingSample& sample, std::int32_t mask_id,
                                           std::int64_t first, std::int64_t last);

}  // namespace sinkscope
