// The draws of Python's random.Random, by which benchmark harnesses choose their few-shot examples.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace sinkscope {

/// MT19937 seeded as Random(seed) is (init_by_array of one word; Matsumoto and Nishimura 2002).
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);

  /// As Random.sample(range(count), wanted): different indices below count, in the order drawn. Throws Error
  /// where more are wanted than there are, or count needs more than 32 bits.
  std::vector<std::size_t> sample(std::size_t count, std::size_t wanted);

 private:
  std::uint32_t next();
  std::size_t below(std::size_t count);

  std::array<std::uint32_t, 624> state_{};
  std::size_t used_ = 624;
};

}  // namespace sinkscope
