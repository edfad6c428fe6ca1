// One oneDNN matrix product of a fixed shape, C[M, N] = A[M, K] B[N, K]^T, made once and shared by all
// threads.
#pragma once

#include <compare>
#include <cstdint>
#include <dnnl.hpp>

namespace sinkscope {

/// Types of A and B and of C; sums are float32 or int32.
enum class ProductType {
  f32,   ///< float x float -> float
  bf16,  ///< bfloat16 x bfloat16 -> bfloat16; needs has_bfloat16_products()
  int8,  ///< uint8 x int8 -> int32, exact
};

struct OperandTypes {
  dnnl::memory::data_type a, b, c;
};
OperandTypes operand_types(ProductType type);

struct ProductShape {
  ProductType type;
  std::int64_t rows;           // M
  std::int64_t columns;        // N
  std::int64_t inner;          // K
  std::int64_t result_stride;  // elements from one row of C to the next
  bool plain_weight = false;   // B is row-major [N, K], whatever weight_layout(...) says
  auto operator<=>(const ProductShape&) const = default;
};

/// The layout B [N, K] is packed in for this type and size, the same for every M. `in_place`: the layout is
/// the checkpoint's own (row-major [N, K]), so nothing needs to be copied.
struct WeightLayout {
  dnnl::memory::desc description;
  bool in_place = false;
  /// [N / 64][K / 2][64][2] without padding along K: what few_rows_kernels.h multiplies. N is rounded up.
  bool in_pairs_of_64_columns = false;
};
const WeightLayout& weight_layout(ProductType type, std::int64_t columns, std::int64_t inner);

/// Row-major [N, K] memory into that layout: weight_layout(...).description.get_size() bytes.
void pack_weight(const void* weight, ProductType type, std::int64_t columns, std::int64_t inner,
                 void* packed);

/// C = A B^T on the calling thread. a: row-major [M, K]; b: in weight_layout(...) or row-major, c: row
/// stride, both as in shape.
void multiply(const ProductShape& shape, const void* a, const void* b, void* c);

/// Whether this processor multiplies bfloat16 itself (and oneDNN knows how).
bool has_bfloat16_products();

/// Whether it adds products of 8-bit integers without saturating on the way (VNNI). Without it unsigned
/// operands must stay below 128: the sum of two products is then kept in 16 bits.
bool has_exact_int8_products();

}  // namespace sinkscope
