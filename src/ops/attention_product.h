// The two matrix products of attention: a tile of queries times packed keys, and a tile of probabilities
// times packed values. Part of attention_kernels.cc, once per instruction set.
//
// Both are C[rows, columns] = A[rows, steps] B[steps, columns], with B packed in panels of panel_columns
// columns, [panel][steps][panel_columns], so that a panel is read from front to back. The innermost piece
// keeps the sums of register_rows x panel_columns in registers.
//
// A step is one 32-bit element of A and of each column of B. With FloatDot it is a float32; with PairDot two
// neighbouring bfloat16 along the summed axis, whose two products one instruction adds to a float32 sum. The
// axis is then padded to an even length with zeros.
#pragma once

#include "ops/vectors.h"

#ifdef __AVX512BF16__
#include <immintrin.h>
#endif

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

// As many sums as leave registers for two vectors of B and one element of A: 12 of 16, or 24 of 32.
constexpr int panel_vectors = 2;
constexpr int panel_columns = panel_vectors * vector_lanes;
constexpr int register_rows = vector_bytes == 64 ? 8 : 6;

struct FloatDot {
  using Element = float;
  static constexpr bool pairs = false;
  static constexpr std::int64_t steps(std::int64_t length) { return length; }
  static Vector add_product(Vector sum, float a, Words b) { return sum + broadcast(a) * number_of(b); }
};

struct PairDot {
  using Element = std::uint32_t;  // the value with the lower index in the lower half
  static constexpr bool pairs = true;
  static constexpr std::int64_t steps(std::int64_t length) { return (length + 1) / 2; }
  static Vector add_product(Vector sum, std::uint32_t a, Words b) {
#ifdef __AVX512BF16__
    return reinterpret_cast<Vector>(_mm512_dpbf16_ps(reinterpret_cast<__m512>(sum),
                                                     reinterpret_cast<__m512bh>(broadcast(a)),
                                                     reinterpret_cast<__m512bh>(b)));
#else
    constexpr std::uint32_t upper = 0xFFFF0000u;
    const Vector even = number_of(broadcast(a << 16)) * number_of(b << 16);
    return sum + number_of(broadcast(a & upper)) * number_of(b & upper) + even;
#endif
  }
};

template <int count>
struct RowCount {
  static constexpr int value = count;
};

// Calls body with `rows` as a constant, 1 <= rows <= register_rows.
template <int largest = register_rows, typename Body>
inline void with_row_count(std::int64_t rows, Body body) {
  if (rows >= largest)
    body(RowCount<largest>{});
  else if constexpr (largest > 1)
    with_row_count<largest - 1>(rows, body);
}

// sums += rows of A times one panel of B
template <typename Dot, int rows>
inline void multiply_panel(const typename Dot::Element* const* a, const typename Dot::Element* panel,
                           std::int64_t steps, Vector (&sums)[rows][panel_vectors]) {
  const typename Dot::Element* row[rows];
  for (int r = 0; r < rows; ++r) row[r] = a[r];
  for (std::int64_t step = 0; step < steps; ++step) {
    const Words b0 = load_vector<Words>(panel + step * panel_columns);
    const Words b1 = load_vector<Words>(panel + step * panel_columns + vector_lanes);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
      sums[r][0] = Dot::add_product(sums[r][0], row[r][step], b0);
      sums[r][1] = Dot::add_product(sums[r][1], row[r][step], b1);
    }
  }
}

// scores = queries times one panel of keys; maxima: the largest score so far in each lane, [rows] vectors.
// bias [panel_columns], of row r from bias + r bias_stride on, is added when not null: -infinity takes keys
// out that are not there or not seen.
template <typename Dot, int rows>
inline void score_panel(const typename Dot::Element* const* queries, const typename Dot::Element* panel,
                        std::int64_t steps, const float* bias, std::int64_t bias_stride, float* scores,
                        std::int64_t score_stride, float* maxima) {
  Vector sums[rows][panel_vectors] = {};
  multiply_panel<Dot, rows>(queries, panel, steps, sums);
  if (bias != nullptr)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < panel_vectors; ++v)
        sums[r][v] += load_vector<Vector>(bias + r * bias_stride + v * vector_lanes);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r) {
    Vector largest = load_vector<Vector>(maxima + r * vector_lanes);
    for (int v = 0; v < panel_vectors; ++v) {
      store_vector(scores + r * score_stride + v * vector_lanes, sums[r][v]);
      largest = larger(sums[r][v], largest);
    }
    store_vector(maxima + r * vector_lanes, largest);
  }
}

// out (+)= probabilities times one panel of some of the values; out [rows] with out_stride
template <typename Dot, int rows>
inline void weigh_panel(const typename Dot::Element* const* probabilities, const typename Dot::Element* panel,
                        std::int64_t steps, bool first, float* out, std::int64_t out_stride) {
  Vector sums[rows][panel_vectors] = {};
  if (!first)
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < panel_vectors; ++v)
        sums[r][v] = load_vector<Vector>(out + r * out_stride + v * vector_lanes);
  multiply_panel<Dot, rows>(probabilities, panel, steps, sums);
#pragma GCC unroll 16
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < panel_vectors; ++v) store_vector(out + r * out_stride + v * vector_lanes, sums[r][v]);
}

}  // namespace
}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
