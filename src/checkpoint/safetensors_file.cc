#include <sinkscope/error.h>
#include <sinkscope/safetensors.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/mapped_file.h"
#include "checkpoint/message.h"
#include "checkpoint/safetensors_header.h"

namespace sinkscope {

std::int64_t TensorView::element_count() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t most_shown = 16;  // a hostile header may give a tensor a million axes
  if (shape.size() <= most_shown) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} axes]", fmt::join(shape.first(most_shown), ", "), shape.size());
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path)
    : file_(std::make_unique<MappedFile>(path)) {
  SafetensorsHeader header = parse_safetensors_header(file_->bytes(), path.string());
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

SafetensorsFile::~SafetensorsFile() = default;
SafetensorsFile::SafetensorsFile(SafetensorsFile&&) noexcept = default;
SafetensorsFile& SafetensorsFile::operator=(SafetensorsFile&&) noexcept = default;

const std::filesystem::path& SafetensorsFile::path() const { return file_->path(); }

const TensorView* SafetensorsFile::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

const TensorView& SafetensorsFile::tensor(std::string_view name) const {
  if (const TensorView* found = find(name)) return *found;
  throw Error("{} has no tensor {}", path().string(), in_quotes(name));
}

void release_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
  // Rounded inwards: neighbours in the pages at both ends may still be in use.
  const std::uintptr_t begin = (first + page - 1) / page * page;
  const std::uintptr_t end = (first + bytes.size()) / page * page;
  // A failure leaves the pages where they are: correct, only larger.
  if (end > begin) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void prefetch_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::uintptr_t begin = first / page * page;
  if (!bytes.empty()) ::madvise(reinterpret_cast<void*>(begin), first + bytes.size() - begin, MADV_WILLNEED);
}

}  // namespace sinkscope
