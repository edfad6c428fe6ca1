// Element types of stored tensors.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace sinkscope {

/// The element types that are read from safetensors files; weights are F32, F16 or BF16.
enum class DType { f64, f32, f16, bf16, i64, i32, i16, i8, u8, boolean };

/// Bytes of one element.
std::size_t dtype_size(DType dtype);

/// The name as safetensors writes it: "F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL".
std::string_view dtype_name(DType dtype);

/// The inverse of dtype_name; none for a name that is not read here (F8_E4M3, U16, ...).
std::optional<DType> dtype_from_name(std::string_view name);

}  // namespace sinkscope
