// One piece of memory from which a forward pass takes its buffers, the same ones at every step.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace sinkscope {

/// Hands out tensors one after the other; going back to a mark lets later ones take the same place. Without
/// memory it only counts, which is how the memory of a pass is planned before there is any.
class Arena {
 public:
  /// A tensor in the arena's memory, uninitialised; undefined while the arena only counts.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType type);

  std::int64_t mark() const { return used_; }
  void back_to(std::int64_t mark) { used_ = mark; }
  /// The most bytes that were ever taken at once.
  std::int64_t peak() const { return peak_; }

  /// Memory for `bytes`; tensors handed out before are void. Kept when there is enough already.
  void reserve(std::int64_t bytes);

 private:
  at::Tensor memory_;  // uint8 [bytes], undefined while only counting
  std::int64_t used_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace sinkscope
