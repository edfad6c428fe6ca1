// One sample's random numbers: the stream of torch.rand on the CPU with torch.manual_seed(seed).
#pragma once

#include <ATen/CPUGeneratorImpl.h>

#include <cstdint>
#include <vector>

namespace sinkscope {

class RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed);
  /// The next values.size() of torch.rand(..., dtype=float64 or float32): uniform on [0, 1).
  void fill(std::vector<double>& values);
  void fill(std::vector<float>& values);

 private:
  at::Generator generator_;
};

}  // namespace sinkscope
