// Writing safetensors files, a piece at a time: memory for a piece, not for a tensor, is enough.
#pragma once

#include <sinkscope/dtype.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"

namespace sinkscope {

/// A tensor as a file's header describes it.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;

  /// Throws Error naming the tensor when the shape is negative somewhere or too large for 64-bit sizes.
  std::uint64_t byte_count() const;
};

/// One file. The header is known from the start, the bytes follow in the order of the tensors:
///
///     SafetensorsWriter writer(path, {{"a", DType::f32, {2, 3}}, {"b", DType::bf16, {4}}});
///     writer.write(bytes);  // of a, then of b, cut as the caller likes
///     writer.finish();
///
/// Tensors begin at multiples of their element's size when they are ordered from the widest type to the
/// narrowest.
class SafetensorsWriter {
 public:
  /// Makes or replaces the file. `metadata` becomes the header's __metadata__; libraries look for "format"
  /// there. Throws Error when a name stands twice or is __metadata__, the header would be larger than the
  /// format allows, or the file cannot be written.
  SafetensorsWriter(const std::filesystem::path& path, const std::vector<StoredTensor>& tensors,
                    const std::map<std::string, std::string>& metadata = {{"format", "pt"}});

  /// The next bytes. Throws Error when they are more than the tensors have room for, or at the system's word.
  void write(std::span<const std::byte> bytes);

  /// Throws Error unless every byte of every tensor was written. `flush`: to the disk, not only to the
  /// system.
  void finish(bool flush = true);

 private:
  OutputFile file_;
  std::string name_;
  std::uint64_t data_bytes_ = 0;
  std::uint64_t written_ = 0;
};

}  // namespace sinkscope
