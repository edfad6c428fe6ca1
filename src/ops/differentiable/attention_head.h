// One head of one sequence on the calling thread, forward and backward, in tiles that stay in cache.
#pragma once

#include <cstdint>

#include "ops/differentiable/attention_mask.h"

namespace sinkscope {

struct HeadShape {
  std::int64_t positions;  // T
  std::int64_t width;      // D
  float scale;
  AttentionMask mask;
};

/// The head's queries, keys and values as factors, [T, D] each without gaps. T: float or Bfloat16.
template <typename T>
struct HeadFactors {
  const T* q;
  const T* k;
  const T* v;
};

/// Rows of float32 `stride` elements apart, [positions, width].
template <typename Float>
struct HeadRows {
  Float* data;
  std::int64_t stride;

  Float* row(std::int64_t position) const { return data + position * stride; }
};

/// output = softmax(scale q k^T + mask) v; log_sum[i] = log sum_j e^(scale q_i k_j), [positions].
template <typename T>
void attend(const HeadShape& shape, const HeadFactors<T>& factors, HeadRows<float> output, float* log_sum);

struct HeadGradients {
  HeadRows<float> q, k, v;
  bool add_to_keys;  // k and v hold the sums over other query heads of the same key head already
};

/// See attention.h for the equations.
template <typename T>
void attend_backward(const HeadShape& shape, const HeadFactors<T>& factors, HeadRows<const float> output,
                     const float* log_sum, HeadRows<const float> output_gradient,
                     const HeadGradients& gradients);

}  // namespace sinkscope
