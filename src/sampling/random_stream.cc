#include "sampling/random_stream.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/randperm.h>

namespace sinkscope {

RandomStream::RandomStream(std::uint64_t seed) : generator_(at::make_generator<at::CPUGeneratorImpl>(seed)) {}

void RandomStream::fill(std::vector<double>& values) {
  at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions(at::kDouble))
      .uniform_(0, 1, generator_);
}

void RandomStream::fill(std::vector<float>& values) {
  at::from_blob(values.data(), {static_cast<std::int64_t>(values.size())}, at::TensorOptions(at::kFloat))
      .uniform_(0, 1, generator_);
}

double RandomStream::next_double() {
  constexpr std::size_t at_once = 1024;
  if (next_ == made_.size()) {
    made_.resize(at_once);
    fill(made_);
    next_ = 0;
  }
  return made_[next_++];
}

std::vector<std::int64_t> RandomStream::permutation(std::int64_t count, std::int64_t wanted) {
  const at::Tensor drawn = at::randperm(count, generator_, at::TensorOptions(at::kLong));
  const auto* first = drawn.data_ptr<std::int64_t>();
  return {first, first + wanted};
}

}  // namespace sinkscope
