#include "checkpoint/random_weights.h"

#include <sinkscope/error.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

#include "base/half.h"

namespace sinkscope {
namespace {

__extension__ using Wide = unsigned __int128;

// The generator wyrand (Wang Yi), read at any place of its sequence: the counter goes up by an odd number,
// the two halves of one product mix it.
constexpr std::uint64_t step = 0xa0761d6478bd642f;
std::uint64_t bits_at(std::uint64_t counter) {
  const Wide product = static_cast<Wide>(counter) * (counter ^ 0xe7037ed1a0b428db);
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// FNV-1a.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

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
  std::uint64_t counter = bits_at(hash_of(tensor.name) + bits_at(seed * step)) + first * step;
  const auto scale = static_cast<float>(tensor.deviation / bell_deviation);
  const auto mean = static_cast<float>(tensor.mean);
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    const T value = convert(mean + scale * bell(bits_at(counter)));
    std::memcpy(bytes.data() + at, &value, sizeof value);
    counter += step;
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
