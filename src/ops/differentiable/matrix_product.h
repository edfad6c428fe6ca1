// One oneDNN matrix product on the calling thread, of any two row-major matrices or their transposes.
//
// Training multiplies by weights that change at every step and by transposed activations, so that nothing is
// packed ahead as in ops/product.h: oneDNN packs as it goes, which costs some percent.
#pragma once

#include <cstdint>

#include "ops/bfloat16.h"

namespace sinkscope {

/// What the numbers of a product are; sums are float32 either way.
enum class ProductPrecision {
  f32,
  bf16,  ///< both factors rounded to bfloat16
};

/// A matrix in memory, rows `stride` elements apart. transposed: the product takes its transpose.
template <typename T>
struct Factor {
  const T* data;
  std::int64_t stride;
  bool transposed = false;
};

template <typename T>
Factor<T> transposed(const T* data, std::int64_t stride) {
  return {data, stride, true};
}

struct ProductSize {
  std::int64_t rows, columns, inner;
};

/// C = A B, or C += A B where `accumulate`. A is [rows, inner] and B [inner, columns] after their
/// transpositions; C is [rows, columns] in float32 with rows c_stride apart.
///
/// The bits depend on the size and the strides only. Every new size of bfloat16 product is planned once
/// (milliseconds) and kept, so sizes should repeat. Without the processor's bfloat16 instructions the factors
/// are widened and multiplied in float32.
void multiply_matrices(ProductSize size, Factor<float> a, Factor<float> b, float* c, std::int64_t c_stride,
                       bool accumulate = false);
void multiply_matrices(ProductSize size, Factor<Bfloat16> a, Factor<Bfloat16> b, float* c,
                       std::int64_t c_stride, bool accumulate = false);

/// C (+)= A B with the factors widened to float32, whatever the processor has.
void multiply_widened(ProductSize size, Factor<Bfloat16> a, Factor<Bfloat16> b, float* c,
                      std::int64_t c_stride, bool accumulate);

}  // namespace sinkscope
