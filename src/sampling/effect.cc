#include <sinkscope/effect.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>

#include "sampling/token_distribution.h"

namespace sinkscope {
namespace {

// ln p_v = logit_v - shift
struct LogSoftmax {
  std::span<const float> logits;
  std::int32_t largest = 0;
  double shift = 0;

  explicit LogSoftmax(std::span<const float> row) : logits(row), largest(largest_index(row)) {
    const auto max = static_cast<double>(row[static_cast<std::size_t>(largest)]);
    double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<double>(logit) - max);
    if (!std::isfinite(max) || !std::isfinite(sum))
      throw Error("the logits are not finite (NaN or infinity)");
    shift = max + std::log(sum);
  }
  double log_of(std::size_t id) const { return static_cast<double>(logits[id]) - shift; }
  double probability_of(std::int32_t id) const { return std::exp(log_of(static_cast<std::size_t>(id))); }
};

}  // namespace

PredictionEffect compare_predictions(std::span<const float> plain, std::span<const float> changed) {
  if (plain.size() != changed.size() || plain.empty())
    throw Error("logits of {} and of {} ids cannot be compared", plain.size(), changed.size());
  const LogSoftmax before(plain), after(changed);
  double kl = 0;
  for (std::size_t id = 0; id < plain.size(); ++id) {
    const double log_before = before.log_of(id), probability = std::exp(log_before);
    if (probability > 0) kl += probability * (log_before - after.log_of(id));
  }
  PredictionEffect effect;
  effect.kl = std::max(kl, 0.0);  // rounding of equal rows
  effect.agrees = before.largest == after.largest;
  effect.confidence = after.probability_of(after.largest) - before.probability_of(before.largest);
  effect.probability = after.probability_of(before.largest) - before.probability_of(before.largest);
  return effect;
}

}  // namespace sinkscope
