// Random weights whose every element can be computed alone.
#pragma once

#include <sinkscope/dtype.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace sinkscope {

/// A tensor of independent elements, about normal with this mean and deviation.
struct RandomTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  double mean = 0;
  double deviation = 0;
};

/// Fills `bytes` with elements of the tensor from index `first` on, as F32, F16 or BF16. An element depends
/// on seed, name and index alone, so that neither threads nor the cut into pieces and files change it; in
/// the narrower types it is the rounded float32. Never further from the mean than 3.5 deviations.
void fill_random(const RandomTensor& tensor, std::uint64_t seed, std::uint64_t first, DType dtype,
                 std::span<std::byte> bytes);

}  // namespace sinkscope
