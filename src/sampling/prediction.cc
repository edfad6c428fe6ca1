#include "sampling/prediction.h"

#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cpu_kernels.h"

namespace sinkscope {
namespace {

std::int32_t noisy_argmax(std::span<const float> logits, std::span<const double> noise, double temperature) {
  std::size_t best = 0;
  double best_value = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double value = static_cast<double>(logits[i]) - temperature * std::log(-std::log(noise[i]));
    if (value > best_value) {
      best = i;
      best_value = value;
    }
  }
  return static_cast<std::int32_t>(best);
}

Prediction make_prediction(std::int32_t token, float logit, float max, double sum_exp,
                           const LladaOptions& options, at::ScalarType model_dtype) {
  if (!std::isfinite(sum_exp) || !std::isfinite(max))
    throw Error("the logits are not finite (NaN or infinity)");
  Prediction result;
  result.token = token;
  if (options.remasking == Remasking::random) return result;
  const double shifted = static_cast<double>(logit) - static_cast<double>(max);
  result.confidence = rounded(std::exp(shifted) / sum_exp, options.confidence, model_dtype);
  return result;
}

}  // namespace

void forbid(std::span<float> logits, const std::vector<std::int32_t>& ids) {
  for (const std::int32_t id : ids)
    if (id >= 0 && static_cast<std::size_t>(id) < logits.size())
      logits[static_cast<std::size_t>(id)] = -std::numeric_limits<float>::infinity();
}

double rounded(double value, ConfidencePrecision precision, at::ScalarType model_dtype) {
  if (precision == ConfidencePrecision::f64) return value;
  const auto single = static_cast<float>(value);
  if (precision == ConfidencePrecision::f32 || model_dtype == at::kFloat) return static_cast<double>(single);
  return static_cast<double>(model_dtype == at::kHalf ? static_cast<float>(c10::Half(single))
                                                      : static_cast<float>(c10::BFloat16(single)));
}

VocabularyOptions vocabulary_options(const LladaOptions& options) {
  VocabularyOptions result;
  const auto add = [](std::vector<std::int32_t>& ids, std::optional<std::int32_t> id) {
    if (id) ids.push_back(*id);
  };
  if (options.forbid_mask) add(result.forbidden, options.mask_id);
  if (options.logits_eos_inf) add(result.forbidden, options.eos_id);
  // The ends lose their probability after the token was taken: a position that predicts one is ranked last.
  if (options.confidence_eos_eot_inf) {
    add(result.excluded, options.eos_id);
    add(result.excluded, options.eot_id);
  }
  result.guidance = options.cfg;
  result.in_float64 =
      options.confidence == ConfidencePrecision::f64 && options.remasking == Remasking::low_confidence;
  return result;
}

Prediction prediction_of(const VocabularyRows& rows, std::size_t row, const LladaOptions& options,
                         at::ScalarType model_dtype) {
  return make_prediction(rows.token[row], rows.logit[row], rows.max[row], rows.sum_exp[row], options,
                         model_dtype);
}

Prediction predict_with_noise(std::span<float> logits, std::span<const double> noise,
                              const LladaOptions& options, at::ScalarType model_dtype) {
  const VocabularyOptions vocabulary = vocabulary_options(options);
  forbid(logits, vocabulary.forbidden);
  const std::int32_t token = noisy_argmax(logits, noise, options.temperature);
  forbid(logits, vocabulary.excluded);
  const VocabularyRow row = cpu_kernels().vocabulary_row(
      logits.data(), static_cast<std::int64_t>(logits.size()), vocabulary.in_float64);
  return make_prediction(token, logits[static_cast<std::size_t>(token)], row.max, row.sum_exp, options,
                         model_dtype);
}

Opened open_confident(std::span<const double> confidence, std::span<const std::uint8_t> candidate,
                      double threshold) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < candidate.size(); ++i)
    count += candidate[i] != 0 && confidence[i] >= threshold ? 1 : 0;
  return open_most_confident(confidence, candidate, std::max<std::int64_t>(count, 1));
}

Opened open_most_confident(std::span<const double> confidence, std::span<const std::uint8_t> candidate,
                           std::int64_t count) {
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i < candidate.size(); ++i)
    if (candidate[i] != 0) order.push_back(static_cast<std::int64_t>(i));
  const auto of = [&](std::int64_t i) { return confidence[static_cast<std::size_t>(i)]; };
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return of(a) > of(b); });
  Opened result;
  const auto opened =
      static_cast<std::size_t>(std::min<std::int64_t>(count, static_cast<std::int64_t>(order.size())));
  for (std::size_t i = opened; i > 0 && i < order.size() && of(order[i]) == of(order[opened - 1]); ++i)
    ++result.ties;
  order.resize(opened);
  result.positions = std::move(order);
  return result;
}

}  // namespace sinkscope
