// One sample's random numbers: the stream of torch.rand on the CPU with torch.manual_seed(seed).
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <cstdint>
#include <vector>

namespace sinkscope {

/// Controls of interventions draw from a stream of their own, seeded this much further, so that they never
/// shift the sampler's.
inline constexpr std::uint64_t control_seed_offset = std::uint64_t{1} << 32;

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed);
  /// The next values.size() of torch.rand(..., dtype=float64 or float32): uniform on [0, 1).
  void fill(std::vector<double>& values);
  void fill(std::vector<float>& values);
  /// The next one of torch.rand(..., dtype=float64). Those behind it that were made with it come at the next
  /// calls: nothing else may be drawn from this stream.
  double next_double();
  /// The first `wanted` of torch.randperm(count).
  std::vector<std::int64_t> permutation(std::int64_t count, std::int64_t wanted);

 private:
  at::Generator generator_;
  std::vector<double> made_;  // of next_double, from next_ on
  std::size_t next_ = 0;
};

}  // namespace sinkscope
