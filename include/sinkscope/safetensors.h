// Safetensors files: named tensors in a memory-mapped file, checked before the first use.
#pragma once

#include <sinkscope/dtype.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// A tensor where it lies in its file: row-major, little-endian, possibly at an address that is not a
/// multiple of the element size. So copy elements out (memcpy, or a bulk copy into an aligned buffer); never
/// cast bytes.data() to a pointer to elements. Valid as long as the file or checkpoint it came from.
struct TensorView {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // empty for a scalar; every extent >= 0
  std::span<const std::byte> bytes;

  /// Product of the shape; checked against overflow when the file was read.
  std::int64_t element_count() const;
};

/// "[2, 3]", for messages.
std::string shape_text(std::span<const std::int64_t> shape);

class MappedFile;

/// One safetensors file. Opening reads and checks the header only; elements are paged in when touched.
/// Movable; views stay valid when it moves. The file must not be shortened while it is open.
class SafetensorsFile {
 public:
  /// Throws Error naming the file (and the tensor) when it is missing, not a safetensors file (Git LFS
  /// pointer, HTML page, PyTorch archive, text, empty, truncated) or its header breaks a rule of the format.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;

  const std::filesystem::path& path() const;
  const std::map<std::string, TensorView, std::less<>>& tensors() const { return tensors_; }
  /// The header's __metadata__ strings; empty when it has none.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  /// Null when the file has no tensor of this name.
  const TensorView* find(std::string_view name) const;
  /// Throws Error naming the file and the tensor when it is not there.
  const TensorView& tensor(std::string_view name) const;

 private:
  std::unique_ptr<MappedFile> file_;
  std::map<std::string, TensorView, std::less<>> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Tells the system that these bytes of a mapped file have been copied and their pages may leave the resident
/// set. A hint: reading them again is correct and pages them in again. Only whole pages inside the span are
/// dropped.
void release_pages(std::span<const std::byte> bytes);

/// Tells the system that these bytes of a mapped file will be read soon, from the front: it reads ahead.
void prefetch_pages(std::span<const std::byte> bytes);

}  // namespace sinkscope
