// From a row of logits to a token and how sure the model is of it.
#pragma once

#include <sinkscope/error.h>
#include <sinkscope/llada_sampler.h>

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/denoising_batch.h"

namespace sinkscope {

struct Prediction {
  std::int32_t token = -1;
  double confidence = 0;  // softmax probability of the token, in the precision asked for
};

/// What the model's head has to know: forbidden and excluded ids, guidance, arithmetic.
VocabularyOptions vocabulary_options(const LladaOptions& options);

/// The ids' logits become -infinity; ids beyond the row are left out.
void forbid(std::span<float> logits, const std::vector<std::int32_t>& ids);

/// The prediction of one row that the head has summed up. model_dtype rounds the confidence for
/// ConfidencePrecision::model. Throws Error when the logits are not finite.
Prediction prediction_of(const VocabularyRows& rows, std::size_t row, const LladaOptions& options,
                         at::ScalarType model_dtype);

/// The prediction of one row of logits [V] in float32 with noise [V], uniform on [0, 1): the token is the
/// arg-max of l - T ln(-ln U), which is that of exp(l) / (-ln U)^T without its overflow. The confidence never
/// sees the noise. The logits are changed in place (forbidden ids become -infinity). Throws as above.
Prediction predict_with_noise(std::span<float> logits, std::span<const double> noise,
                              const LladaOptions& options, at::ScalarType model_dtype);

/// Those `count` candidates with the largest confidence, ties to the lower index; fewer where there are
/// fewer.
struct Opened {
  std::vector<std::int64_t> positions;  // by rank
  std::int64_t ties = 0;                // candidates left out whose confidence equals the last one's
};
/// confidence [S]; candidate [S], 1 where the position may be opened.
Opened open_most_confident(std::span<const double> confidence, std::span<const std::uint8_t> candidate,
                           std::int64_t count);
/// All candidates whose confidence is at least the threshold, and the surest one in any case; by rank.
Opened open_confident(std::span<const double> confidence, std::span<const std::uint8_t> candidate,
                      double threshold);

/// Probabilities as the precision asked for has them.
double rounded(double value, ConfidencePrecision precision, at::ScalarType model_dtype);

/// Writes predict() to the sample's current step. What it throws gets step and position in front.
template <typename Predict>
void set_prediction(DenoisingSample& sample, std::int64_t position, Predict predict) {
  try {
    const Prediction prediction = predict();
    sample.proposed[static_cast<std::size_t>(position)] = prediction.token;
    sample.confidence[static_cast<std::size_t>(position)] = prediction.confidence;
  } catch (const Error& error) {
    throw Error("step {}, position {}: {}", sample.result.steps, position, error.what());
  }
}

}  // namespace sinkscope
