// Compiled once per instruction set (cmake/rooms.cmake), each time into namespace SINKSCOPE_KERNEL_LEVEL.
// Written in vectors as wide as the registers; the last, shorter vector of a run goes through a padded copy.
#include "ops/differentiable/training_kernels.h"

#include <cstddef>

#include "ops/kernel_values.h"
#include "ops/vectors.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

constexpr float log2_e = 1.44269504088896341F;

// Calls body(i, n) for the n values from i on: whole vectors, where n is a constant, and the rest.
template <typename Body>
inline void over_vectors(std::int64_t count, Body body) {
  std::int64_t i = 0;
  for (; i + vector_lanes <= count; i += vector_lanes) body(i, vector_lanes);
  if (i < count) body(i, static_cast<int>(count - i));
}

// n values and `fill` behind them
inline Vector load_some(const float* from, int n, float fill = 0) {
  if (n == vector_lanes) return load_vector<Vector>(from);
  Vector value = broadcast(fill);
  __builtin_memcpy(&value, from, static_cast<std::size_t>(n) * sizeof *from);
  return value;
}

inline void store_some(float* to, Vector value, int n) {
  __builtin_memcpy(to, &value, static_cast<std::size_t>(n) * sizeof *to);
}

// Rounded to nearest, ties to even; NaN stays one.
inline void store_some(Bfloat16* to, Vector value, int n) {
#ifdef __AVX512BF16__
  const __m256bh rounded = _mm512_cvtneps_pbh(reinterpret_cast<__m512>(value));
#else
  using Halves = std::uint16_t __attribute__((vector_size(vector_bytes / 2)));
  const Words bits = bits_of(value);
  const Words nearest = (bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16;
  const Words quiet_nan = (bits >> 16) | 0x40u;
  const Words chosen = (bits & 0x7FFFFFFFu) > 0x7F800000u ? quiet_nan : nearest;
  const Halves rounded = __builtin_convertvector(chosen, Halves);
#endif
  __builtin_memcpy(to, &rounded, static_cast<std::size_t>(n) * sizeof *to);
}

inline Vector smaller(Vector a, Vector b) { return a < b ? a : b; }  // b where one of them is NaN

// 2^t, 0 far below and 2^127 above; NaN stays NaN.
inline Vector bounded_power_of_two(Vector t) {
  return power_of_two(smaller(broadcast(127.0F), larger(broadcast(lowest_power), t)));
}

// 1 / (1 + e^-x)
inline Vector sigmoid(Vector x) { return 1.0F / (1.0F + bounded_power_of_two(x * -log2_e)); }

template <typename T>
void convert(const float* from, T* to, std::int64_t count) {
  over_vectors(count, [&](std::int64_t i, int n) { store_some(to + i, load_some(from + i, n), n); });
}

template <typename T>
void scale(const float* from, float factor, T* to, std::int64_t count) {
  over_vectors(count, [&](std::int64_t i, int n) { store_some(to + i, load_some(from + i, n) * factor, n); });
}

template <typename T>
float exponentials(const float* x, float max, float factor, T* to, std::int64_t count) {
  Vector sum{};
  const float in_powers = factor * log2_e;
  over_vectors(count, [&](std::int64_t i, int n) {
    const Vector e = bounded_power_of_two((load_some(x + i, n, -__builtin_inff()) - max) * in_powers);
    store_some(to + i, e, n);
    sum += e;
  });
  return sum_lanes(sum);
}

template <typename T>
void attention_gradient(const float* s, const float* dp, float factor, float log_sum, float delta, T* p,
                        T* ds, std::int64_t count) {
  const float in_powers = factor * log2_e;
  const float shift = log_sum * log2_e;
  over_vectors(count, [&](std::int64_t i, int n) {
    const Vector probability = bounded_power_of_two(load_some(s + i, n) * in_powers - shift);
    store_some(p + i, probability, n);
    store_some(ds + i, probability * (load_some(dp + i, n) - delta) * factor, n);
  });
}

float rms_norm(const float* x, const float* update, const float* weight, float eps, float* sum, float* y,
               std::int64_t width) {
  Vector squares{};
  over_vectors(width, [&](std::int64_t i, int n) {
    Vector value = load_some(x + i, n);
    if (update != nullptr) {
      value += load_some(update + i, n);
      store_some(sum + i, value, n);
    }
    squares += value * value;
  });
  const float r = 1.0F / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(width) + eps);
  const float* normed = update == nullptr ? x : sum;
  over_vectors(width, [&](std::int64_t i, int n) {
    store_some(y + i, load_some(normed + i, n) * r * load_some(weight + i, n), n);
  });
  return r;
}

void rms_norm_gradient(const float* x, const float* weight, float r, const float* dy, const float* dsum,
                       float* dx, float* dweight, std::int64_t width) {
  Vector products{};
  over_vectors(width, [&](std::int64_t i, int n) {
    const Vector along = load_some(dy + i, n) * load_some(x + i, n);
    products += along * load_some(weight + i, n);
    store_some(dweight + i, load_some(dweight + i, n) + along * r, n);
  });
  const float along_x = sum_lanes(products) * r * r * r / static_cast<float>(width);
  over_vectors(width, [&](std::int64_t i, int n) {
    Vector d = load_some(dy + i, n) * load_some(weight + i, n) * r - load_some(x + i, n) * along_x;
    if (dsum != nullptr) d += load_some(dsum + i, n);
    store_some(dx + i, d, n);
  });
}

void swiglu(const float* gate, const float* up, float* y, std::int64_t count) {
  over_vectors(count, [&](std::int64_t i, int n) {
    const Vector g = load_some(gate + i, n);
    store_some(y + i, g * sigmoid(g) * load_some(up + i, n), n);
  });
}

void swiglu_gradient(const float* gate, const float* up, const float* dy, float* dgate, float* dup,
                     std::int64_t count) {
  over_vectors(count, [&](std::int64_t i, int n) {
    const Vector g = load_some(gate + i, n), d = load_some(dy + i, n), s = sigmoid(g);
    store_some(dup + i, d * g * s, n);
    store_some(dgate + i, d * load_some(up + i, n) * s * (1.0F + g * (1.0F - s)), n);
  });
}

float dot(const float* a, const float* b, std::int64_t count) {
  Vector sum{};
  over_vectors(count, [&](std::int64_t i, int n) { sum += load_some(a + i, n) * load_some(b + i, n); });
  return sum_lanes(sum);
}

float maximum(const float* x, std::int64_t count) {
  Vector best = broadcast(0.0F) - __builtin_inff();
  over_vectors(count,
               [&](std::int64_t i, int n) { best = larger(load_some(x + i, n, -__builtin_inff()), best); });
  return largest_lane(best);
}

double sum_of_squares(const float* x, std::int64_t count) {
  constexpr int lanes = 16;
  double partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) {
      const auto value = static_cast<double>(x[i + lane]);
      partial[lane] += value * value;
    }
  for (int lane = 0; i < count; ++i, ++lane) {
    const auto value = static_cast<double>(x[i]);
    partial[lane] += value * value;
  }
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) partial[lane] += partial[lane + width];
  return partial[0];
}

void adamw(const AdamwCoefficients& coefficients, const float* __restrict gradient,
           float* __restrict parameter, float* __restrict first, float* __restrict second,
           std::int64_t count) {
  const AdamwCoefficients c = coefficients;
  for (std::int64_t i = 0; i < count; ++i) {
    const float g = gradient[i] * c.gradient_scale;
    const float m = c.beta1 * first[i] + (1.0F - c.beta1) * g;
    const float v = c.beta2 * second[i] + (1.0F - c.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] = parameter[i] * c.decay - c.step_size * m / (__builtin_sqrtf(v) * c.root_scale + c.eps);
  }
}

template <typename T>
constexpr FactorKernels<T> factors() {
  return {convert<T>, scale<T>, exponentials<T>, attention_gradient<T>};
}

#define SINKSCOPE_STRING_OF(name) #name
#define SINKSCOPE_NAME_OF(name) SINKSCOPE_STRING_OF(name)

}  // namespace

const TrainingKernels& training_kernels() {
  static const TrainingKernels table{SINKSCOPE_NAME_OF(SINKSCOPE_KERNEL_LEVEL),
                                     factors<float>(),
                                     factors<Bfloat16>(),
                                     rms_norm,
                                     rms_norm_gradient,
                                     swiglu,
                                     swiglu_gradient,
                                     dot,
                                     maximum,
                                     sum_of_squares,
                                     adamw};
  return table;
}

}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
