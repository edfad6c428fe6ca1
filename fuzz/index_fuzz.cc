// model.safetensors.index.json: no accepted file name may lead out of the index's folder.
#include <sinkscope/error.h>

#include <cstdint>
#include <cstdlib>

#include "checkpoint/weight_index.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const auto& [tensor, file] : sinkscope::parse_weight_index(text, "index"))
      if (file.find_first_of("/\\") != std::string::npos || file.starts_with("..")) std::abort();
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
