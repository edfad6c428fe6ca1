// What the samplers of masked diffusion models share: options, and what they report.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/effect.h>
#include <sinkscope/observation.h>
#include <sinkscope/sinks.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace sinkscope {

/// Arithmetic of the confidence's softmax.
enum class ConfidencePrecision {
  model,  ///< the logits' own dtype: in bfloat16 many confidences round to 1 and tie
  f32,
  f64,
};

/// Keys and values that are kept from one forward to the next (Fast-dLLM). They go stale as tokens change:
/// the result differs from that without a cache.
enum class CacheMode {
  none,
  prefix,  ///< those before the block; the block and all behind it are computed at every step
  dual,    ///< those before and behind the block; only the block is computed
};

/// Names follow the command line.
struct DenoisingOptions {
  std::int64_t gen_len = 128;   ///< tokens to generate
  std::int64_t steps = 128;     ///< denoising steps in all
  std::int64_t block_len = 32;  ///< tokens of a block; blocks are filled from left to right
  double temperature = 0;       ///< 0: arg-max
  ConfidencePrecision confidence = ConfidencePrecision::f64;
  bool forbid_mask = false;  ///< the mask id is never predicted
  /// Opens at each step every candidate whose confidence is at least this, and the surest one in any case
  /// (Fast-dLLM); none: by schedule.
  std::optional<double> threshold;
  CacheMode cache = CacheMode::none;
  std::int32_t mask_id = 0;
  InterventionOptions sinks;  ///< top_k = 0: none
  bool effect = false;        ///< every step's input also goes through the model without the intervention
  Capture capture = Capture::columns;  ///< what the observer gets to see
  std::vector<LayerHead> maps;         ///< full attention maps of these

  bool fast() const { return threshold.has_value() || cache != CacheMode::none; }
};

/// Throws UsageError naming the option where a number is out of range, maps are asked for with a cache, or
/// the effect of no intervention, or
/// lengths do not divide: gen_len by block_len, and steps by the number of blocks (the nearest values that
/// work are named).
void validate(const DenoisingOptions& options);
/// Throws UsageError where rank own is asked for samples too long for its counts (65535 positions).
void check_row_counts(const InterventionOptions& sinks, std::int64_t positions);
/// Throws UsageError where an effect is asked for without an intervention.
void validate_effect(bool effect, const InterventionOptions& sinks);
/// The part about lengths.
void validate_blocks(const DenoisingOptions& options);

/// One denoising step of one sample, S = prompt + gen_len. Spans and tensors are valid during the call only;
/// tensors are float32 on the CPU, contiguous, undefined where Capture does not ask for them. With guidance
/// these are the conditional row's. With a cache a step may compute a part of the positions only: its columns
/// are sums over those queries.
struct StepRecord {
  std::int64_t step = 0;
  std::span<const std::int32_t> state;  // [S] input ids of the forward
  std::span<const std::int32_t>
      proposed;                           // [S] predicted id at masked positions that were looked at, else -1
  std::span<const float> confidence;      // [S] as ranked; NaN where not a candidate
  at::Tensor column_sum;                  // [3, L, H, S] raw, by query class
  std::span<const std::uint8_t> removed;  // [L, H, S]; empty without an intervention and with rank own
  std::span<const std::uint16_t> queries_without_key;  // [L, H, S] rank own: how many queries lost the key
  at::Tensor diagonal;                                 // [L, H, S]
  at::Tensor row_entropy;                              // [3, L, H]
  at::Tensor row_max;                                  // [3, L, H]
  at::Tensor value_norm;                               // [L, Hkv, S]
  std::map<LayerHead, at::Tensor> maps;                // [S, S]
  /// Of the predicted positions, by the logits as they are at temperature 0, with guidance and without what
  /// options forbid. Null unless asked for.
  const StepEffect* effect = nullptr;
};

struct SampleRequest {
  std::vector<std::int32_t> prompt;  // may be empty for diffusion models; the mask id in it is infilled
  std::uint64_t seed = 0;            // of this sample's own generator
};

struct SampleResult {
  std::vector<std::int32_t> ids;    // [S] the final row
  std::int64_t steps = 0;           // denoising steps, or generated tokens
  std::int64_t forward_passes = 0;  // rows of a batch and of guidance count as one
  std::int64_t masks_left = 0;      // masks in the final row: predicted mask ids stay masks
  std::int64_t confidence_ties =
      0;  // candidates left masked that tied with the last one opened (lower index wins)
  std::int64_t empty_rows = 0;       // attention rows whose keys were all removed
  std::int64_t control_missing = 0;  // picked keys for which a control found no other key
};

using StepObserver = std::function<void(std::size_t sample, const StepRecord&)>;

}  // namespace sinkscope
