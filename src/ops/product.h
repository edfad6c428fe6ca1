// One oneDNN matrix product of a fixed shape, C[M, N] = A[M, K] B[N, K]^T, made once and shared by all
// threads.
#pragma once

#include <compare>
#include <cstdint>
#include <dnnl.hpp>

namespace sinkscope {

struct ProductShape {
  dnnl::memory::data_type type;  // of A, B and C
  std::int64_t rows;             // M
  std::int64_t columns;          // N
  std::int64_t inner;            // K
  std::int64_t result_stride;    // elements from one row of C to the next
  auto operator<=>(const ProductShape&) const = default;
};

/// The layout B [N, K] is packed in for this type and size, the same for every M. `in_place`: the layout is
/// the checkpoint's own (row-major [N, K]), so nothing needs to be copied.
struct WeightLayout {
  dnnl::memory::desc description;
  bool in_place = false;
};
const WeightLayout& weight_layout(dnnl::memory::data_type type, std::int64_t columns, std::int64_t inner);

/// Row-major [N, K] memory into that layout.
dnnl::memory pack_weight(const void* weight, dnnl::memory::data_type type, std::int64_t columns,
                         std::int64_t inner);

/// C = A B^T on the calling thread. a: row-major [M, K]; b: in weight_layout(...), c: row stride as in shape.
void multiply(const ProductShape& shape, const void* a, const void* b, void* c);

}  // namespace sinkscope
