// A whole safetensors file: anything but Error, and any view outside the file, is a finding.
#include <sinkscope/error.h>

#include <cstdint>
#include <cstdlib>

#include "checkpoint/safetensors_header.h"

static volatile std::byte touched;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> file = std::as_bytes(std::span(data, size));
  try {
    std::size_t covered = 0;
    for (const auto& [name, view] : sinkscope::parse_safetensors_header(file, "file").tensors) {
      covered += view.bytes.size();
      if (static_cast<std::size_t>(view.element_count()) * sinkscope::dtype_size(view.dtype) !=
          view.bytes.size())
        std::abort();
      // A view outside the file: the sanitizer stops at its first or last byte.
      if (!view.bytes.empty()) touched = view.bytes.front() | view.bytes.back();
    }
    if (covered > size) std::abort();
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
