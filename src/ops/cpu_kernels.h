// The memory-bound pieces of a forward pass on the CPU, compiled once per instruction set from cpu_kernels.cc
// and chosen when the program starts. All of them work on one row or one run of values, never start threads,
// and add in a fixed order, so that a result depends on the instruction set but not on the number of threads
// or the batch.
//
// Storage is float or bfloat16 (its 16 bits in a Bfloat16); arithmetic is float32.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/attention_kernels.h"
#include "ops/bfloat16.h"

namespace sinkscope {

/// What the softmax over (a run of) a vocabulary needs: p_i = exp(x_i - max) / sum_exp. Not finite when a
/// logit is NaN or +infinity; max -infinity and sum 0 where all of them are -infinity.
struct VocabularyRow {
  std::int64_t argmax = 0;  // lowest index on ties
  float max = 0;
  double sum_exp = 0;  // sum of exp(x - max)
};

template <typename T>
struct StorageKernels {
  /// y = bf16/float(x / sqrt(mean(x^2) + eps)) * weight: normalised in float32, cast to the storage type,
  /// then multiplied there, as the checkpoints' own code does. x, weight, y: [width]; y may be x.
  void (*rms_norm)(const T* x, const T* weight, T* y, std::int64_t width, float eps);
  /// Rotates the two halves of `heads` consecutive vectors in float32 and casts back. x: [heads, 2*half] in
  /// place; cosine, sine: [half].
  void (*rotate)(T* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half);
  /// The same with every product and sum cast to the storage type; cosine and sine are values of that type.
  void (*rotate_in_storage)(T* x, const float* cosine, const float* sine, std::int64_t heads,
                            std::int64_t half);
  /// y = cast(silu(gate)) * up, each step cast to the storage type. [count]
  void (*silu_multiply)(const T* gate, const T* up, T* y, std::int64_t count);
  /// x += y, cast to the storage type. [count]
  void (*add)(T* x, const T* y, std::int64_t count);
  /// x += cast(y * factor), each step cast to the storage type. [count]
  void (*add_scaled)(T* x, const T* y, float factor, std::int64_t count);
  /// To and from float32. Rounds to nearest, ties to even.
  void (*widen)(const T* from, float* to, std::int64_t count);
  void (*narrow)(const float* from, T* to, std::int64_t count);
  /// sqrt(sum x^2), summed in float32 lanes. [count]
  float (*norm)(const T* x, std::int64_t count);
  /// y = round(x / scale) + zero in 0..levels, with the scale and the zero that make the smallest and the
  /// largest of x and 0 the ends of that range; 0 is met exactly. [count]
  void (*quantise)(const T* x, std::int64_t count, int levels, std::uint8_t* y, float* scale,
                   std::int32_t* zero);
  /// y[n] = scale * weight_scale[n] * (sums[n] - zero * weight_sum[n]), cast to the storage type. [count]
  void (*scale_sums)(const std::int32_t* sums, const float* weight_scale, const std::int32_t* weight_sum,
                     float scale, std::int32_t zero, T* y, std::int64_t count);
  /// y = u + cast(cast(c - u) * factor), each step cast to the storage type: guidance. [count]
  void (*guide)(const T* conditional, const T* unconditional, float factor, T* y, std::int64_t count);
};

struct CpuKernels {
  std::string_view name;
  StorageKernels<float> f32;
  StorageKernels<Bfloat16> bf16;
  AttentionKernels<float> attention_f32;
  AttentionKernels<Bfloat16> attention_bf16;
  /// What attention_bf16 is where an instruction adds the products of two bfloat16 pairs, with that
  /// instruction written out where there is none: the tests hold it against the others everywhere.
  AttentionKernels<Bfloat16> attention_bf16_pairs;
  /// A run of logits [count]: see VocabularyRow. in_float64 takes the exponentials in float64 (relative error
  /// below 1e-15), else in float32.
  VocabularyRow (*vocabulary_row)(const float* x, std::int64_t count, bool in_float64);
};

/// The best level this processor runs, or the one that SINKSCOPE_CPU (portable, avx2, avx512,
/// avx512_bf16) names.
const CpuKernels& cpu_kernels();
/// Every level this processor runs, worst first: what the tests go through.
std::vector<const CpuKernels*> available_cpu_kernels();

template <typename T>
const StorageKernels<T>& storage_kernels(const CpuKernels& kernels);
template <>
inline const StorageKernels<float>& storage_kernels<float>(const CpuKernels& kernels) {
  return kernels.f32;
}
template <>
inline const StorageKernels<Bfloat16>& storage_kernels<Bfloat16>(const CpuKernels& kernels) {
  return kernels.bf16;
}

template <typename T>
const AttentionKernels<T>& attention_kernels(const CpuKernels& kernels);
template <>
inline const AttentionKernels<float>& attention_kernels<float>(const CpuKernels& kernels) {
  return kernels.attention_f32;
}
template <>
inline const AttentionKernels<Bfloat16>& attention_kernels<Bfloat16>(const CpuKernels& kernels) {
  return kernels.attention_bf16;
}

}  // namespace sinkscope
