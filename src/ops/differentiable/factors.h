// What the operations of this folder ask of their tensors, and what they give to products.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <string_view>
#include <type_traits>

#include "ops/backend.h"
#include "ops/differentiable/matrix_product.h"
#include "ops/differentiable/training_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {

/// Rows that one thread takes at a time: enough for a product to run at full speed, and, of a small batch,
/// few enough for all threads to have some.
inline std::int64_t rows_at_a_time(std::int64_t rows) { return rows >= 2048 ? 256 : 64; }

/// Contiguous float32 on the CPU, as the kernels read it; `what` names it when it is something else.
inline at::Tensor contiguous_floats(const at::Tensor& x, std::string_view what) {
  TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, what, " is ", x.toString(),
              "; the CPU kernels of training take float32");
  return x.contiguous();
}

template <typename T>
constexpr at::ScalarType scalar_type_of() {
  return sizeof(T) == sizeof(float) ? at::kFloat : at::kBFloat16;
}

/// Uninitialised, on the CPU. T: float or Bfloat16.
template <typename T>
at::Tensor empty_tensor(at::IntArrayRef sizes) {
  return at::empty(sizes, at::TensorOptions(scalar_type_of<T>()));
}

/// x, contiguous float32, as products take it; x itself where it is that already.
template <typename T>
at::Tensor as_factor(const at::Tensor& x) {
  if constexpr (std::is_same_v<T, float>) return x;
  at::Tensor result = empty_tensor<T>(x.sizes());
  constexpr std::int64_t piece_values = 1 << 15;
  parallel_rows(x.numel(), piece_values, [&](std::int64_t begin, std::int64_t end) {
    factor_kernels<T>(training_kernels())
        .convert(storage_of<float>(x) + begin, storage_of<T>(result) + begin, end - begin);
  });
  return result;
}

/// Runs body(T*) with T what a product of this precision multiplies.
template <typename Body>
decltype(auto) with_factor(ProductPrecision precision, Body body) {
  if (precision == ProductPrecision::bf16) return body(static_cast<Bfloat16*>(nullptr));
  return body(static_cast<float*>(nullptr));
}

}  // namespace sinkscope
