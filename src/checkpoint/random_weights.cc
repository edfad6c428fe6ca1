#include "checkpoint/random_weights.h"

#include <sinkscope/error.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/random_bits.h"

namespace sinkscope {
namespace {

// Sum of the four 16-bit quarters: nearly a bell, exact in float32, without tables or transcendentals that
// would differ between machines.
float bell(std::uint64_t bits) {
  constexpr std::uint32_t quarter = 0xffff;
  constexpr int centre = 2 * static_cast<int>(quarter);
  const auto sum =
      static_cast<int>((bits & quarter) + ((bits >> 16) & quarter) + ((bits >> 32) & quarter) + (bits >> 48));
  return static_cast<float>(sum - centre);
}

// Four independent uniform integers of [0, 65536): variance 4 (65536^2 - 1) / 12.
const double bell_deviation = std::sqrt((65536.0 * 65536.0 - 1) / 3);

std::uint16_t bfloat16_from_float(float value) {  // to nearest, ties to even; no NaN gets here
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

template <typename T, typename Convert>
void fill(const RandomTensor& tensor, std::uint64_t seed, std::uint64_t first, std::span<std::byte> bytes,
          Convert convert) {
  // Tensors and seeds begin at places of the sequence that lie far apart.
  std::uint64_t counter =
      random_bits(hash_of(tensor.name) + random_bits(seed * random_step)) + first * random_step;
  const auto scale = static_cast<float>(tensor.deviation / bell_deviation);
  const auto mean = static_cast<float>(tensor.mean);
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = convert(mean + scale * bell(random_bits(counter)));
    std::memcpy(bytes.data() + at, &value, sizeof value);
    counter += random_step;
  }
}

}  // namespace

void fill_random(const RandomTensor& tensor, std::uint64_t seed, std::uint64_t first, DType dtype,
                 std::span<std::byte> bytes) {
  switch (dtype) {
    case DType::f32:
      return fill<float>(tensor, seed, first, bytes, [](float value) { return value; });
    case DType::bf16:
      return fill<std::uint16_t>(tensor, seed, first, bytes, bfloat16_from_float);
    case DType::f16:
      return fill<std::uint16_t>(tensor, seed, first, bytes, half_from_float);
    default:
      throw Error("tensor {}: random weights are F32, F16 or BF16, not {}", tensor.name, dtype_name(dtype));
  }
}

}  // namespace sinkscope
