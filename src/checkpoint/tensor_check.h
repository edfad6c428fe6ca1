// The tensors a model needs against the tensors a checkpoint has.
#pragma once

#include <sinkscope/safetensors.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace sinkscope {

using TensorMap = std::map<std::string, TensorView, std::less<>>;

/// A weight a model needs: its name and shape ([out, in] for matrices).
struct ExpectedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
};

/// Throws Error when weights are missing or surplus (listed, with a word about what a surplus name means
/// where it is known), of another shape, or of a type other than F32, F16 and BF16. `checkpoint` names the
/// place.
void check_tensors(const std::vector<ExpectedTensor>& expected, const TensorMap& tensors,
                   const std::string& checkpoint);

/// The type of most elements of these weights.
DType dominating_dtype(const std::vector<ExpectedTensor>& expected, const TensorMap& tensors);

/// Extent 0 of a matrix that decides it (embedding, head). Throws Error unless the tensor is a matrix of
/// `columns` columns and 1 to 2^31 - 1 rows.
std::int64_t matrix_rows(const TensorMap& tensors, const std::string& name, std::int64_t columns,
                         const std::string& checkpoint);

}  // namespace sinkscope
