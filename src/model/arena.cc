#include "model/arena.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace sinkscope {
namespace {

constexpr std::int64_t alignment = 64;

}  // namespace

at::Tensor Arena::take(at::IntArrayRef shape, at::ScalarType type) {
  std::int64_t bytes = static_cast<std::int64_t>(c10::elementSize(type));
  for (const std::int64_t size : shape) bytes *= size;
  const std::int64_t begin = used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  peak_ = std::max(peak_, used_);
  if (!memory_.defined()) return {};
  TORCH_INTERNAL_ASSERT(used_ <= memory_.numel(), "the plan of the pass is too small");
  return at::from_blob(memory_.data_ptr<std::uint8_t>() + begin, shape, at::TensorOptions(type));
}

void Arena::reserve(std::int64_t bytes) {
  used_ = 0;
  if (memory_.defined() && memory_.numel() >= bytes) return;
  memory_.reset();  // never both at once
  memory_ = at::empty({std::max(bytes, alignment)}, at::TensorOptions(at::kByte));
}

}  // namespace sinkscope
