// The passes over rows of values that training needs besides those of ops/cpu_kernels.h, compiled once per
// instruction set. As there: no threads, sums in a fixed order, arithmetic in float32.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/bfloat16.h"

namespace sinkscope {

/// One step of AdamW, see adamw.h; the bias corrections are already in it.
struct AdamwCoefficients {
  float beta1, beta2, eps;
  float decay;           // the parameter's factor: 1 - learning rate * weight decay
  float step_size;       // learning rate / (1 - beta1^t)
  float root_scale;      // 1 / sqrt(1 - beta2^t)
  float gradient_scale;  // the gradient's factor, for clipping
};

/// What depends on the type in which factors reach a product.
template <typename T>
struct FactorKernels {
  /// to = value, rounded. [count]
  void (*convert)(const float* from, T* to, std::int64_t count);
  /// to = value * factor, rounded. [count]
  void (*scale)(const float* from, float factor, T* to, std::int64_t count);
  /// to = e^(factor (x - max)), rounded; returns the sum before rounding. [count]; to may be x.
  float (*exponentials)(const float* x, float max, float factor, T* to, std::int64_t count);
  /// p = e^(factor s - log_sum), ds = factor p (dp - delta), each rounded. [count]
  void (*attention_gradient)(const float* s, const float* dp, float factor, float log_sum, float delta, T* p,
                             T* ds, std::int64_t count);
};

struct TrainingKernels {
  std::string_view name;
  FactorKernels<float> f32;
  FactorKernels<Bfloat16> bf16;
  /// sum = x + update (x where update is null, and then not written), y = sum r weight with
  /// r = 1 / sqrt(mean(sum^2) + eps); returns r. [width]
  float (*rms_norm)(const float* x, const float* update, const float* weight, float eps, float* sum, float* y,
                    std::int64_t width);
  /// dx = r (g - x r^2 mean(g x)) + dsum with g = dy weight; dweight += dy x r. dsum may be null. [width]
  void (*rms_norm_gradient)(const float* x, const float* weight, float r, const float* dy, const float* dsum,
                            float* dx, float* dweight, std::int64_t width);
  /// y = silu(gate) up. [count]
  void (*swiglu)(const float* gate, const float* up, float* y, std::int64_t count);
  /// dgate = dy up silu'(gate), dup = dy silu(gate). [count]
  void (*swiglu_gradient)(const float* gate, const float* up, const float* dy, float* dgate, float* dup,
                          std::int64_t count);
  float (*dot)(const float* a, const float* b, std::int64_t count);
  /// The largest value; NaN is passed over, -infinity where there is nothing else.
  float (*maximum)(const float* x, std::int64_t count);
  double (*sum_of_squares)(const float* x, std::int64_t count);
  void (*adamw)(const AdamwCoefficients& coefficients, const float* gradient, float* parameter, float* first,
                float* second, std::int64_t count);
};

/// The copy for cpu_kernels()'s instruction set.
const TrainingKernels& training_kernels();
/// Every copy this processor runs, worst first.
std::vector<const TrainingKernels*> available_training_kernels();

template <typename T>
const FactorKernels<T>& factor_kernels(const TrainingKernels& kernels);
template <>
inline const FactorKernels<float>& factor_kernels<float>(const TrainingKernels& kernels) {
  return kernels.f32;
}
template <>
inline const FactorKernels<Bfloat16>& factor_kernels<Bfloat16>(const TrainingKernels& kernels) {
  return kernels.bf16;
}

}  // namespace sinkscope
