// NumPy .npz files: written array by array while the data comes in, read through a memory map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// Element types, little endian. int64 and float64 are read, and written by nothing here.
enum class ArrayType { uint8, uint16, int32, int64, float16, float32, float64 };

/// "uint8", "float16", ... as NumPy names them.
std::string_view name_of(ArrayType type);

/// Bytes of one element.
std::size_t size_of(ArrayType type);

/// Writes one .npz whose leading dimensions need not be known in advance: every array goes to its own file in
/// a temporary folder beside `path` ("NAME.npz.PID-N.tmp") and finish() puts them together. `path` appears
/// whole or not at all; an existing file is replaced. A writer that is destroyed unfinished leaves nothing
/// behind.
///
/// Equal calls give equal bytes: entries are stored in the order of declaration, dated 1980-01-01, in zip64
/// form, each with a version 1.0 header; NaNs are written as the positive quiet NaN.
///
/// Every failure to write throws Error naming `path` and the system's reason. Disk use reaches the size of
/// the result plus its largest array; memory does not grow with what was appended.
class NpzWriter {
 public:
  explicit NpzWriter(std::filesystem::path path);
  ~NpzWriter();
  NpzWriter(NpzWriter&&) noexcept;
  NpzWriter& operator=(NpzWriter&&) noexcept;

  /// An array of shape [N, slice_shape...] where N counts the calls of append. Names are letters, digits and
  /// `_`.
  void declare(const std::string& name, ArrayType type, std::vector<std::int64_t> slice_shape);

  /// One slice, row-major; its length must be the product of slice_shape. Floats go to float16 (rounded to
  /// nearest even, beyond its range infinity) or float32 arrays, integers to arrays of their own type.
  void append(const std::string& name, std::span<const float> slice);
  void append(const std::string& name, std::span<const std::int32_t> slice);
  void append(const std::string& name, std::span<const std::uint8_t> slice);
  void append(const std::string& name, std::span<const std::uint16_t> slice);

  /// A whole array of known shape; {} is a scalar with one value.
  void add(const std::string& name, ArrayType type, std::vector<std::int64_t> shape,
           std::span<const float> values);
  void add(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::int32_t> values);
  void add(const std::string& name, std::vector<std::int64_t> shape, std::span<const std::uint8_t> values);

  /// Assembles, flushes to disk and renames. Nothing may be appended afterwards.
  void finish();

  const std::filesystem::path& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// One array of an .npz: `bytes` are its elements, row-major, little endian, not aligned.
struct NpzArray {
  ArrayType type = ArrayType::float32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;

  /// Product of shape; 1 for a scalar.
  std::size_t count() const { return bytes.size() / size_of(type); }
};

/// An .npz opened for reading. Stored entries are read in place, deflated ones (numpy.savez_compressed) are
/// inflated at first use. All errors are Error and name the file and the array. Refused: anything not little
/// endian, Fortran order, Python objects, structured and other element types, encrypted or otherwise packed
/// entries. Not for use by several threads at once.
class NpzFile {
 public:
  /// Most bytes that deflated entries of one file may take together.
  static constexpr std::uint64_t default_inflate_limit = std::uint64_t{8} << 30;

  explicit NpzFile(const std::filesystem::path& path, std::uint64_t inflate_limit = default_inflate_limit);

  /// The same on bytes that outlive this object; `name` stands for the file in errors.
  NpzFile(std::span<const std::byte> bytes, std::string name,
          std::uint64_t inflate_limit = default_inflate_limit);
  ~NpzFile();
  NpzFile(NpzFile&&) noexcept;
  NpzFile& operator=(NpzFile&&) noexcept;

  /// Array names, without ".npy", in the order of the file.
  std::vector<std::string> names() const;
  bool contains(std::string_view name) const;

  /// Throws Error listing what the file holds when there is no such array. Valid for the life of this object.
  NpzArray array(std::string_view name) const;

  /// Values of any type as float (float64 and integers are rounded to it).
  std::vector<float> floats(std::string_view name) const;

  /// `count` slices along the leading dimension from `first` on, as float: one step of a big array.
  std::vector<float> floats(std::string_view name, std::size_t first, std::size_t count) const;

  /// Values of an integer array; one outside int32 throws Error.
  std::vector<std::int32_t> int32s(std::string_view name) const;

  /// The one value of an integer array of one element, of shape () or (1,).
  std::int32_t int32_scalar(std::string_view name) const;

  /// Compares the CRC-32 of the named entry, or of all entries, with its data. Reads everything; throws
  /// Error.
  void verify(std::string_view name) const;
  void verify() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sinkscope
