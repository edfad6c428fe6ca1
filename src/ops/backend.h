// Which implementation of the operations a model runs on.
#pragma once

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

#include "ops/cpu_kernels.h"

namespace sinkscope {

/// cpu: the kernels of this folder and oneDNN; tensors live on the CPU in float32 or bfloat16.
/// aten: libtorch's own operations, on any device it has. It is the CUDA path, and on the CPU the plain
/// version that the tests hold the kernels against.
enum class Backend { cpu, aten };

/// Runs body(T*) with T the storage type of a float32 or bfloat16 CPU tensor.
template <typename Body>
decltype(auto) with_storage(at::ScalarType type, Body body) {
  if (type == at::kBFloat16) return body(static_cast<Bfloat16*>(nullptr));
  TORCH_CHECK(type == at::kFloat, "CPU kernels take float32 or bfloat16, not ", c10::toString(type));
  return body(static_cast<float*>(nullptr));
}

template <typename T>
T* storage_of(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.data_ptr());
}

}  // namespace sinkscope
