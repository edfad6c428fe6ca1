// Any bytes as an .npz: the reader answers with arrays or with an Error.
#include <sinkscope/error.h>
#include <sinkscope/npz.h>

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using sinkscope::Error;
  constexpr std::uint64_t inflate_limit = std::uint64_t{1} << 22;
  try {
    const sinkscope::NpzFile file(std::as_bytes(std::span(data, size)), "fuzz.npz", inflate_limit);
    for (const std::string& name : file.names()) {
      // Each question by itself, or the first refusal would hide the others.
      try {
        file.floats(name);
        file.floats(name, 1, 1);
      } catch (const Error&) {
      }
      try {
        file.int32s(name);
      } catch (const Error&) {
      }
      try {
        file.verify(name);
      } catch (const Error&) {
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
