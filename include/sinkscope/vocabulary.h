// What a sampler wants to know of the logits, without keeping them.
#pragma once

#include <cstdint>
#include <vector>

namespace sinkscope {

struct VocabularyOptions {
  std::vector<std::int32_t> forbidden;  ///< their logits count as -infinity
  std::vector<std::int32_t> excluded;   ///< may be the token, but have no share in the probabilities
  /// Classifier-free guidance w > 0: the first half of the rows is conditional, the second unconditional, of
  /// the same lengths, and the logits are u + (c - u) (w + 1), each step cast to the dtype.
  double guidance = 0;
  bool in_float64 = true;  ///< the exponentials; else in float32
};

/// Of each row of logits l, R rows (half of the input's with guidance). The probability of id i is
/// exp(l_i - max) / sum_exp, taken over the ids that are neither forbidden nor excluded. Not finite where a
/// logit is NaN or +infinity.
struct VocabularyRows {
  std::vector<std::int32_t> token;  ///< the arg-max, the lowest id on ties
  std::vector<float> logit;         ///< of the token; -infinity where it is excluded
  std::vector<float> max;
  std::vector<double> sum_exp;
};

}  // namespace sinkscope
