// The header of a .npy array: element type, shape, order.
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
#pragma once

#include <sinkscope/npz.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

struct NpyHeader {
  ArrayType type = ArrayType::float32;
  std::vector<std::int64_t> shape;
  std::size_t size = 0;  ///< bytes before the data
};

/// Product of the dimensions; none where one is negative or the product does not fit 63 bits.
std::optional<std::uint64_t> element_count(std::span<const std::int64_t> shape);

/// A version 1.0 header, byte by byte as numpy.save writes it.
std::string write_npy_header(ArrayType type, std::span<const std::int64_t> shape);

/// Reads versions 1 to 3 and checks that the data behind the header is exactly what shape and type ask for.
/// `where` names the array in errors. Throws Error.
NpyHeader read_npy_header(std::span<const std::byte> array, const std::string& where);

}  // namespace sinkscope
