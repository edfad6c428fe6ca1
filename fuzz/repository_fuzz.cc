// The hub's list of files: no accepted name may lead out of the snapshot's folder, no checksum out of blobs/.
#include <sinkscope/error.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "hub/repository.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const sinkscope::RemoteFile& file : sinkscope::parse_repository(text, "answer").files) {
      const std::filesystem::path name = std::filesystem::path("snapshot") / file.name;
      if (*name.lexically_normal().begin() != "snapshot" || name.lexically_normal() != name) std::abort();
      if (file.checksum.find_first_not_of("0123456789abcdef") != std::string::npos) std::abort();
    }
  } catch (const sinkscope::Error&) {
  }
  return 0;
}
