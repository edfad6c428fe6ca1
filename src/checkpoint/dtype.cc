#include <sinkscope/dtype.h>

namespace sinkscope {
namespace {

struct DTypeRow {
  DType dtype;
  std::string_view name;
  std::size_t size;
};

constexpr DTypeRow dtypes[] = {{DType::f64, "F64", 8},     {DType::f32, "F32", 4}, {DType::f16, "F16", 2},
                               {DType::bf16, "BF16", 2},   {DType::i64, "I64", 8}, {DType::i32, "I32", 4},
                               {DType::i16, "I16", 2},     {DType::i8, "I8", 1},   {DType::u8, "U8", 1},
                               {DType::boolean, "BOOL", 1}};

constexpr const DTypeRow& row_of(DType dtype) { return dtypes[static_cast<std::size_t>(dtype)]; }

constexpr bool rows_follow_the_enumeration() {
  for (std::size_t i = 0; i < std::size(dtypes); ++i)
    if (dtypes[i].dtype != static_cast<DType>(i)) return false;
  return true;
}
static_assert(rows_follow_the_enumeration());

}  // namespace

std::size_t dtype_size(DType dtype) { return row_of(dtype).size; }

std::string_view dtype_name(DType dtype) { return row_of(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DTypeRow& row : dtypes)
    if (row.name == name) return row.dtype;
  return std::nullopt;
}

}  // namespace sinkscope
