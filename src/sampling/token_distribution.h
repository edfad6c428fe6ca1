// From a row of logits to the distribution a token is drawn from: temperature, top_p, top_k.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sinkscope {

struct TokenFilter {
  double temperature = 0;  ///< 0: the logits stay as they are
  double top_p = 1;        ///< 1: off; 0 leaves the largest
  std::int64_t top_k = 0;  ///< 0: off
  /// Autoregressive generation filters by top_k before top_p, Dream by top_p first.
  bool top_k_first = false;
};

/// logits [V] in place: divided by the temperature; what the filter takes out becomes -infinity. top_p keeps
/// the largest ones up to the one with which their probability exceeds top_p. At least the largest stays; of
/// equal ones the lower ids.
void filter_logits(std::span<float> logits, const TokenFilter& filter);

/// Throws UsageError naming --top-p or --top-k where they are out of range.
void validate_filters(double top_p, std::int64_t top_k);

/// exp(l - max) / sum. Throws Error when a logit is NaN or +infinity, or all of them are -infinity.
void softmax(std::span<const float> logits, std::vector<double>& probability);

/// The lowest index of the largest value.
std::int32_t largest_index(std::span<const float> values);

/// The id at which the cumulative sum of the float32 probabilities, normalised by its end, reaches `uniform`:
/// what torch.multinomial with replacement makes of it.
std::int32_t draw_by_inversion(std::span<const double> probability, double uniform);

/// The id with the largest probability / E, E = -ln(1 - uniform): torch.multinomial without replacement.
/// uniform [V].
std::int32_t draw_by_exponentials(std::span<const double> probability, std::span<const double> uniform);

}  // namespace sinkscope
