// Autoregressive decoding with kept keys and values: the baseline that diffusion models are compared with.
#pragma once

#include <sinkscope/denoising.h>
#include <sinkscope/transformer.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace sinkscope {

/// Names follow the command line.
struct AutoregressiveOptions {
  std::int64_t gen_len = 128;         ///< new tokens at most
  double temperature = 0;             ///< 0: arg-max
  double top_p = 1;                   ///< 1: off
  std::int64_t top_k = 0;             ///< 0: off; before top_p
  std::vector<std::int32_t> end_ids;  ///< generation stops behind one of these; empty: it goes on to gen_len
  /// Asked after every token with those generated so far: true stops the sample. May be empty.
  std::function<bool(std::size_t sample, std::span<const std::int32_t> generated)> stop;
  /// Keys to remove for each new token by the previous token's own row of attention times the number of keys
  /// that it saw (fewer than all where attention has a window), so that uniform attention is 1 (rank `last`).
  /// Nothing is removed while the prompt is read.
  InterventionOptions sinks;
  /// Every token's query also goes through the model without the removal, by the same kept keys and values.
  bool effect = false;
  Capture capture = Capture::columns;
};

/// Throws UsageError naming the option. Needs no model.
void validate(const AutoregressiveOptions& options);

/// One generated token of one sample, n keys. Valid during the call only.
struct TokenRecord {
  std::int64_t step = 0;                   // token number, from 0
  std::span<const std::int32_t> sequence;  // [n] prompt and the tokens before this one
  at::Tensor last_row;  // float32 [L, H, n] raw attention of the last query; Capture::none: undefined
  std::span<const std::uint8_t> removed;  // [L, H, n]; empty without an intervention and for the first token
  std::span<const float> logits;          // [V] as the model gave them; Capture::full only
  PredictionEffect effect = {};           // where asked for; by the logits as the model gave them
  float removed_mass = 0;                 // likewise: mean over layers and heads of what the keys had, raw
};
using TokenObserver = std::function<void(std::size_t sample, const TokenRecord&)>;

/// Continues all prompts in one ragged batch; SampleResult::ids are prompt and new tokens, steps counts the
/// new ones. Each sample draws from its own generator, one double for each id of the vocabulary and token:
/// the id with the largest p / E, E = -ln(1 - U), as torch.multinomial draws one. Throws Error when a logit
/// is not finite; UsageError from validate(), for an empty prompt and for ids outside the model's vocabulary.
std::vector<SampleResult> sample_autoregressive(const Transformer& model,
                                                std::span<const SampleRequest> samples,
                                                const AutoregressiveOptions& options,
                                                const TokenObserver& observer = {});

}  // namespace sinkscope
