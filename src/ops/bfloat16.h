// The 16 bits of a bfloat16 as the kernels pass them around.
#pragma once

#include <cstdint>

namespace sinkscope {

struct Bfloat16 {
  std::uint16_t bits;
};

}  // namespace sinkscope
