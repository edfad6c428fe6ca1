#include "sampling/token_distribution.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace sinkscope {
namespace {

constexpr float removed = -std::numeric_limits<float>::infinity();

// Ids whose logit is not removed and at least `least`, the largest first, lower ids first among equals.
std::vector<std::int32_t> ranked(std::span<const float> logits, float least) {
  std::vector<std::int32_t> ids;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] >= least && logits[i] != removed) ids.push_back(static_cast<std::int32_t>(i));
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  return ids;
}

void keep_only(std::span<float> logits, std::span<const std::int32_t> ids) {
  std::vector<float> kept;
  for (const std::int32_t id : ids) kept.push_back(logits[id]);
  std::fill(logits.begin(), logits.end(), removed);
  for (std::size_t i = 0; i < ids.size(); ++i) logits[ids[i]] = kept[i];
}

void keep_top_k(std::span<float> logits, std::int64_t count) {
  if (count <= 0 || count >= static_cast<std::int64_t>(logits.size())) return;
  std::vector<float> values(logits.begin(), logits.end());
  std::nth_element(values.begin(), values.begin() + (count - 1), values.end(), std::greater<>());
  std::vector<std::int32_t> ids = ranked(logits, values[static_cast<std::size_t>(count) - 1]);
  if (ids.size() > static_cast<std::size_t>(count)) ids.resize(static_cast<std::size_t>(count));
  keep_only(logits, ids);
}

void keep_top_p(std::span<float> logits, double top_p) {
  if (top_p >= 1) return;
  const float max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(max));
  // Ids less probable than this have less than 1 - top_p together, so that none of them is kept.
  const double negligible = (1 - top_p) / static_cast<double>(logits.size());
  const auto least = static_cast<float>(static_cast<double>(max) + std::log(negligible * sum));
  std::vector<std::int32_t> ids = ranked(logits, std::min(std::nextafter(least, removed), max));
  double cumulative = 0;
  std::size_t kept = 0;
  while (kept < ids.size() && (kept == 0 || cumulative <= top_p))
    cumulative += std::exp(static_cast<double>(logits[ids[kept++]]) - static_cast<double>(max)) / sum;
  ids.resize(kept);
  keep_only(logits, ids);
}

// Where the quotients leave float's range the temperature is as good as 0: the largest are left.
void divide(std::span<float> logits, float temperature) {
  const float max = *std::max_element(logits.begin(), logits.end());
  if (std::isfinite(max / temperature))
    for (float& logit : logits) logit /= temperature;
  else
    for (float& logit : logits) logit = logit == max ? 0 : removed;
}

void check_finite(std::span<const float> logits) {
  bool any = false;
  for (const float logit : logits) {
    if (std::isnan(logit) || logit == -removed) throw Error("the logits are not finite (NaN or infinity)");
    any = any || logit != removed;
  }
  if (!any) throw Error("the logits are not finite (NaN or infinity)");
}

}  // namespace

void filter_logits(std::span<float> logits, const TokenFilter& filter) {
  check_finite(logits);
  if (filter.temperature > 0) divide(logits, static_cast<float>(filter.temperature));
  if (filter.top_k_first) keep_top_k(logits, filter.top_k);
  keep_top_p(logits, filter.top_p);
  if (!filter.top_k_first) keep_top_k(logits, filter.top_k);
}

void validate_filters(double top_p, std::int64_t top_k) {
  if (!(top_p >= 0 && top_p <= 1)) throw UsageError("--top-p is {}; it must be from 0 to 1 (1: off)", top_p);
  if (top_k < 0) throw UsageError("--top-k is {}; it must be at least 0 (0: off)", top_k);
}

void softmax(std::span<const float> logits, std::vector<double>& probability) {
  check_finite(logits);
  const float max = *std::max_element(logits.begin(), logits.end());
  probability.resize(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    probability[i] =
        logits[i] == removed ? 0 : std::exp(static_cast<double>(logits[i]) - static_cast<double>(max));
    sum += probability[i];
  }
  for (double& p : probability) p /= sum;
}

std::int32_t largest_index(std::span<const float> values) {
  return static_cast<std::int32_t>(std::max_element(values.begin(), values.end()) - values.begin());
}

std::int32_t draw_by_inversion(std::span<const double> probability, double uniform) {
  // In float32 and in this order, as torch sums: the end decides where the uniform number falls.
  std::vector<float> cumulative(probability.size());
  float sum = 0;
  for (std::size_t i = 0; i < probability.size(); ++i)
    cumulative[i] = sum += static_cast<float>(probability[i]);
  for (float& c : cumulative) c /= sum;
  cumulative.back() = 1;
  const auto reached = std::partition_point(cumulative.begin(), cumulative.end(),
                                            [&](float c) { return static_cast<double>(c) < uniform; });
  return static_cast<std::int32_t>(reached - cumulative.begin());
}

std::int32_t draw_by_exponentials(std::span<const double> probability, std::span<const double> uniform) {
  std::size_t best = 0;
  double best_value = -1;
  for (std::size_t i = 0; i < probability.size(); ++i) {
    if (probability[i] == 0) continue;
    const double value = probability[i] / -std::log1p(-uniform[i]);
    if (value > best_value) {
      best = i;
      best_value = value;
    }
  }
  return static_cast<std::int32_t>(best);
}

}  // namespace sinkscope
