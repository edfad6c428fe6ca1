// Compiled once per instruction set (cmake/rooms.cmake), each time into namespace SINKSCOPE_KERNEL_LEVEL. The
// loops are plain and written for the compiler's vectoriser: sums run in kLanes independent lanes that are
// added pairwise at the end, so that the order is fixed and no reordering flag is needed. Mathematics comes
// from builtins, not from <cmath>: an out-of-line copy of a standard inline function would carry this level's
// instructions to other files.
#include "ops/cpu_kernels.h"

#include <cstring>

#include "ops/kernel_values.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {

// attention_kernels.cc of the same level
AttentionKernels<float> attention_of_floats();
AttentionKernels<Bfloat16> attention_of_bfloat16();
AttentionKernels<Bfloat16> attention_of_bfloat16_pairs();

namespace {

constexpr int lanes = 16;

// The value as it is after one trip through the storage type.
inline float cast(const float*, float value) { return value; }
inline float cast(const Bfloat16*, float value) {
  Bfloat16 stored;
  store(&stored, value);
  return load(&stored);
}

// e^x for x <= 88, relative error below 2e-7; 0 below -87.3 (float32's normal range ends there). Cody-Waite
// reduction by ln 2 in two parts and the Taylor series to degree 7, which on |r| <= ln(2)/2 errs by less than
// 6e-9.
inline float exponential(float x) {
  constexpr float log2_e = 1.44269504088896341F;
  constexpr float ln2_high = 0.693359375F;
  constexpr float ln2_low = -2.12194440e-4F;
  constexpr float round_to_integer = 12582912.0F;  // 1.5 * 2^23: adding it drops the fraction, ties to even
  const float clamped = x < -87.3F ? -87.3F : x;
  const float n = (clamped * log2_e + round_to_integer) - round_to_integer;
  const float r = (clamped - n * ln2_high) - n * ln2_low;
  float p = 1.0F / 5040;
  p = p * r + 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  float power;
  std::memcpy(&power, &bits, sizeof power);
  return x < -87.3F ? 0.0F : p * power;
}

// e^x in float64 for x <= 0, relative error below 1e-15; 0 below -708 (float64's normal range ends there). As
// above, with the Taylor series to degree 13: on |r| <= ln(2)/2 it errs by less than 5e-18.
inline double exponential(double x) {
  constexpr double log2_e = 1.4426950408889634074;
  constexpr double ln2_high = 6.93147180369123816490e-01;
  constexpr double ln2_low = 1.90821492927058770002e-10;
  constexpr double round_to_integer = 6755399441055744.0;  // 1.5 * 2^52
  const double clamped = x < -708.0 ? -708.0 : x;
  const double shifted = clamped * log2_e + round_to_integer;
  const double n = shifted - round_to_integer;
  const double r = (clamped - n * ln2_high) - n * ln2_low;
  double p = 1.0 / 6227020800;
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  std::uint64_t bits;  // the low bits of `shifted` hold n
  std::memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << 52) + (std::uint64_t{1023} << 52);
  double power;
  std::memcpy(&power, &bits, sizeof power);
  return x < -708.0 ? 0.0 : p * power;
}

template <typename Sum>
inline Sum add_lanes(Sum* partial) {
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int i = 0; i < width; ++i) partial[i] += partial[i + width];
  return partial[0];
}

// sum of term(i), i in [0, count), as Sum
template <typename Sum, typename Term>
inline Sum lane_sum(std::int64_t count, Term term) {
  Sum partial[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) partial[lane] += term(i + lane);
  for (int lane = 0; i < count; ++i, ++lane) partial[lane] += term(i);
  return add_lanes(partial);
}

// Largest of term(i); -infinity for none. NaN is passed over.
template <typename Term>
inline float lane_max(std::int64_t count, Term term) {
  float partial[lanes];
  for (float& value : partial) value = -__builtin_inff();
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) {
      const float value = term(i + lane);
      partial[lane] = value > partial[lane] ? value : partial[lane];
    }
  for (; i < count; ++i) {
    const float value = term(i);
    partial[0] = value > partial[0] ? value : partial[0];
  }
  float best = partial[0];
  for (int lane = 1; lane < lanes; ++lane) best = partial[lane] > best ? partial[lane] : best;
  return best;
}

template <typename T>
void rms_norm(const T* x, const T* weight, T* y, std::int64_t width, float eps) {
  const float sum = lane_sum<float>(width, [&](std::int64_t i) { return load(x + i) * load(x + i); });
  const float scale = 1.0F / __builtin_sqrtf(sum / static_cast<float>(width) + eps);
  for (std::int64_t i = 0; i < width; ++i) store(y + i, cast(y, load(x + i) * scale) * load(weight + i));
}

template <typename T>
void rotate(T* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half) {
  for (std::int64_t head = 0; head < heads; ++head) {
    T* first = x + head * 2 * half;
    T* second = first + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = load(first + i);
      const float b = load(second + i);
      store(first + i, a * cosine[i] - b * sine[i]);
      store(second + i, b * cosine[i] + a * sine[i]);
    }
  }
}

template <typename T>
void rotate_in_storage(T* x, const float* cosine, const float* sine, std::int64_t heads, std::int64_t half) {
  for (std::int64_t head = 0; head < heads; ++head) {
    T* first = x + head * 2 * half;
    T* second = first + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const float a = load(first + i);
      const float b = load(second + i);
      store(first + i, cast(x, a * cosine[i]) - cast(x, b * sine[i]));
      store(second + i, cast(x, b * cosine[i]) + cast(x, a * sine[i]));
    }
  }
}

template <typename T>
void silu_multiply(const T* gate, const T* up, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float loaded = load(gate + i);
    const float g = loaded < -88.0F ? -88.0F : loaded;  // silu is below 1e-36 there, and e^88 still finite
    store(y + i, cast(y, g / (1.0F + exponential(-g))) * load(up + i));
  }
}

template <typename T>
void add(T* x, const T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(x + i, load(x + i) + load(y + i));
}

template <typename T>
void add_scaled(T* x, const T* y, float factor, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(x + i, load(x + i) + cast(y, load(y + i) * factor));
}

template <typename T>
void widen(const T* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = load(from + i);
}

template <typename T>
void narrow(const float* from, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) store(to + i, from[i]);
}

template <typename T>
float norm(const T* x, std::int64_t count) {
  return __builtin_sqrtf(lane_sum<float>(count, [&](std::int64_t i) { return load(x + i) * load(x + i); }));
}

template <typename T>
void quantise(const T* x, std::int64_t count, int levels, std::uint8_t* y, float* scale, std::int32_t* zero) {
  // A value that is no number makes the scale infinite and the products not finite: nothing is hidden.
  const float largest = lane_max(count, [&](std::int64_t i) {
    const float value = load(x + i);
    return value == value ? value : __builtin_inff();
  });
  const float smallest = -lane_max(count, [&](std::int64_t i) { return -load(x + i); });
  const float high = largest > 0 ? largest : 0;
  const float low = smallest < 0 ? smallest : 0;
  const auto top = static_cast<float>(levels);
  const float step = (high - low) / top;
  const float inverse = step > 0 ? 1.0F / step : 0;
  *scale = step;
  const float origin = __builtin_rintf(-low * inverse);
  *zero = static_cast<std::int32_t>(origin);
  constexpr float round_to_integer = 12582912.0F;  // see exponential()
  for (std::int64_t i = 0; i < count; ++i) {
    const float rounded = ((load(x + i) * inverse + round_to_integer) - round_to_integer) + origin;
    const float above = rounded > 0 ? rounded : 0;
    y[i] = static_cast<std::uint8_t>(static_cast<std::int32_t>(above > top ? top : above));
  }
}

template <typename T>
void scale_sums(const std::int32_t* sums, const float* weight_scale, const std::int32_t* weight_sum,
                float scale, std::int32_t zero, T* y, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n)
    store(y + n, scale * weight_scale[n] * static_cast<float>(sums[n] - zero * weight_sum[n]));
}

template <typename T>
void guide(const T* conditional, const T* unconditional, float factor, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float u = load(unconditional + i);
    const float difference = cast(y, load(conditional + i) - u);
    store(y + i, u + cast(y, difference * factor));
  }
}

VocabularyRow vocabulary_row(const float* x, std::int64_t count, bool in_float64) {
  VocabularyRow row;
  row.max = lane_max(count, [&](std::int64_t i) { return x[i]; });
  if (row.max == -__builtin_inff()) {  // NaN is passed over by the maximum, but not here
    row.sum_exp =
        lane_sum<double>(count, [&](std::int64_t i) { return x[i] == x[i] ? 0.0 : __builtin_nan(""); });
    return row;
  }
  while (row.argmax < count - 1 && x[row.argmax] != row.max) ++row.argmax;
  const double max = static_cast<double>(row.max);
  row.sum_exp = in_float64
                    ? lane_sum<double>(
                          count, [&](std::int64_t i) { return exponential(static_cast<double>(x[i]) - max); })
                    : static_cast<double>(lane_sum<float>(
                          count, [&](std::int64_t i) { return exponential(x[i] - row.max); }));
  return row;
}

template <typename T>
constexpr StorageKernels<T> storage() {
  return {rms_norm<T>, rotate<T>, rotate_in_storage<T>, silu_multiply<T>, add<T>,  add_scaled<T>, widen<T>,
          narrow<T>,   norm<T>,   quantise<T>,          scale_sums<T>,    guide<T>};
}

#define SINKSCOPE_STRING_OF(name) #name
#define SINKSCOPE_NAME_OF(name) SINKSCOPE_STRING_OF(name)

}  // namespace

const CpuKernels& kernels() {
  static const CpuKernels table{SINKSCOPE_NAME_OF(SINKSCOPE_KERNEL_LEVEL),
                                storage<float>(),
                                storage<Bfloat16>(),
                                attention_of_floats(),
                                attention_of_bfloat16(),
                                attention_of_bfloat16_pairs(),
                                vocabulary_row};
  return table;
}

}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
