#include "eval/python_random.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

namespace sinkscope {
namespace {

constexpr std::size_t words = 624;
constexpr std::size_t middle = 397;

std::uint32_t mixed(std::uint32_t previous) { return previous ^ (previous >> 30U); }

// CPython keeps a set of what is drawn instead of a list of what is left where the set is the smaller one:
// 21 entries, and for more than 5 draws the least power of 4 that is at least thrice as many.
std::size_t size_of_set(std::size_t wanted) {
  std::size_t size = 21;
  if (wanted <= 5) return size;
  std::size_t power = 1;
  while (power < 3 * wanted) power *= 4;
  return size + power;
}

}  // namespace

PythonRandom::PythonRandom(std::uint32_t seed) {
  state_[0] = 19650218U;
  for (std::size_t i = 1; i < words; ++i)
    state_[i] = 1812433253U * mixed(state_[i - 1]) + static_cast<std::uint32_t>(i);
  std::size_t i = 1;
  const auto step = [&] {
    if (++i < words) return;
    state_[0] = state_[words - 1];
    i = 1;
  };
  for (std::size_t k = 0; k < words; ++k, step())
    state_[i] = (state_[i] ^ (mixed(state_[i - 1]) * 1664525U)) + seed;
  for (std::size_t k = 1; k < words; ++k, step())
    state_[i] = (state_[i] ^ (mixed(state_[i - 1]) * 1566083941U)) - static_cast<std::uint32_t>(i);
  state_[0] = 0x80000000U;
}

std::uint32_t PythonRandom::next() {
  if (used_ == words) {
    for (std::size_t i = 0; i < words; ++i) {
      const std::uint32_t joined = (state_[i] & 0x80000000U) | (state_[(i + 1) % words] & 0x7fffffffU);
      state_[i] = state_[(i + middle) % words] ^ (joined >> 1U) ^ ((joined & 1U) != 0 ? 0x9908b0dfU : 0U);
    }
    used_ = 0;
  }
  std::uint32_t value = state_[used_++];
  value ^= value >> 11U;
  value ^= (value << 7U) & 0x9d2c5680U;
  value ^= (value << 15U) & 0xefc60000U;
  return value ^ (value >> 18U);
}

// The top bits of a draw, as many as count has; again while that is too large.
std::size_t PythonRandom::below(std::size_t count) {
  const auto bits = static_cast<unsigned>(std::bit_width(count));
  std::size_t value = next() >> (32U - bits);
  while (value >= count) value = next() >> (32U - bits);
  return value;
}

std::vector<std::size_t> PythonRandom::sample(std::size_t count, std::size_t wanted) {
  if (wanted > count) throw Error("{} examples are wanted of {}", wanted, count);
  if (count > 0xffffffffU) throw Error("cannot draw from {} examples", count);
  std::vector<std::size_t> drawn;
  if (count <= size_of_set(wanted)) {
    std::vector<std::size_t> left(count);
    std::iota(left.begin(), left.end(), std::size_t{0});
    for (; drawn.size() < wanted; left.pop_back()) {
      std::size_t& place = left[below(left.size())];
      drawn.push_back(place);
      place = left.back();
    }
    return drawn;
  }
  std::set<std::size_t> seen;
  while (drawn.size() < wanted) {
    const std::size_t index = below(count);
    if (seen.insert(index).second) drawn.push_back(index);
  }
  return drawn;
}

}  // namespace sinkscope
