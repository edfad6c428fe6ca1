#include "ops/linear.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>

#include <algorithm>

#include "ops/parallel.h"
#include "ops/product.h"

namespace sinkscope {
namespace {

// Wide slices amortise the packing of x, narrow ones let small matrices use all threads.
std::int64_t slice_width(std::int64_t out_features) {
  return std::min<std::int64_t>(out_features, out_features >= 2048 ? 256 : 64);
}

// Rows of x that share one pass over a slice of the weight.
constexpr std::int64_t rows_per_group = 1024;

dnnl::memory::data_type onednn_type(at::ScalarType type) {
  return type == at::kBFloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

// Consecutive sequences, cut where a group has reached rows_per_group: indices into offsets.
std::vector<std::int64_t> group_sequences(std::span<const std::int64_t> offsets) {
  std::vector<std::int64_t> groups{0};
  const auto sequences = static_cast<std::int64_t>(offsets.size()) - 1;
  for (std::int64_t s = 1; s < sequences; ++s)
    if (offsets[s] - offsets[groups.back()] >= rows_per_group) groups.push_back(s);
  groups.push_back(sequences);
  return groups;
}

}  // namespace

bool has_bfloat16_products() {
  constexpr auto needed = static_cast<unsigned>(dnnl::cpu_isa::avx512_core_bf16);
  return (static_cast<unsigned>(dnnl::get_effective_cpu_isa()) & needed) == needed;
}

Linear::Linear(Backend backend, const at::Tensor& weight, at::ScalarType dtype, const at::Device& device)
    : backend_(backend), dtype_(dtype), in_(weight.size(1)), out_(weight.size(0)) {
  const at::Tensor converted = weight.to(device, dtype).contiguous();
  owns_weight_ = converted.data_ptr() != weight.data_ptr();
  if (backend == Backend::aten) {
    weight_ = converted;
  } else {
    pack(converted);
  }
}

void Linear::pack(const at::Tensor& weight) {
  const bool widen = dtype_ == at::kBFloat16 && !has_bfloat16_products();
  const std::int64_t width = slice_width(out_);
  for (std::int64_t begin = 0; begin < out_; begin += width)
    slices_.push_back({begin, std::min(width, out_ - begin), {}});
  const auto type = onednn_type(dtype_);
  const auto in_place = [&](const Slice& slice) {
    return widen || weight_layout(type, slice.width, in_).in_place;
  };
  if (std::any_of(slices_.begin(), slices_.end(), in_place)) {
    weight_ = weight;
  } else {
    owns_weight_ = true;
  }
  parallel_for(static_cast<std::int64_t>(slices_.size()), [&](std::int64_t i) {
    Slice& slice = slices_[static_cast<std::size_t>(i)];
    if (in_place(slice)) return;
    const auto* rows =
        static_cast<const std::byte*>(weight.data_ptr()) + slice.begin * in_ * weight.element_size();
    slice.packed = pack_weight(rows, type, slice.width, in_);
  });
}

void Linear::multiply_slice(const Slice& slice, const at::Tensor& x, at::Tensor& y,
                            std::span<const std::int64_t> offsets) const {
  const auto bytes = static_cast<std::int64_t>(x.element_size());
  const void* weight = slice.packed
                           ? slice.packed.get_data_handle()
                           : static_cast<const std::byte*>(weight_.data_ptr()) + slice.begin * in_ * bytes;
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t first = offsets[s];
    if (offsets[s + 1] == first) continue;
    multiply({onednn_type(dtype_), offsets[s + 1] - first, slice.width, in_, out_},
             static_cast<const std::byte*>(x.data_ptr()) + first * in_ * bytes, weight,
             static_cast<std::byte*>(y.data_ptr()) + (first * out_ + slice.begin) * bytes);
  }
}

void Linear::widen_and_multiply_slice(const Slice& slice, const at::Tensor& wide_x, at::Tensor& y,
                                      std::span<const std::int64_t> offsets) const {
  const auto& kernels = storage_kernels<Bfloat16>(cpu_kernels());
  thread_local std::vector<float> weight;
  thread_local std::vector<float> result;
  weight.resize(static_cast<std::size_t>(slice.width * in_));
  kernels.widen(storage_of<Bfloat16>(weight_) + slice.begin * in_, weight.data(), slice.width * in_);
  for (std::size_t s = 0; s + 1 < offsets.size(); ++s) {
    const std::int64_t first = offsets[s];
    const std::int64_t rows = offsets[s + 1] - first;
    if (rows == 0) continue;
    result.resize(static_cast<std::size_t>(rows * slice.width));
    multiply({dnnl::memory::data_type::f32, rows, slice.width, in_, slice.width},
             wide_x.data_ptr<float>() + first * in_, weight.data(), result.data());
    for (std::int64_t row = 0; row < rows; ++row)
      kernels.narrow(result.data() + row * slice.width,
                     storage_of<Bfloat16>(y) + (first + row) * out_ + slice.begin, slice.width);
  }
}

at::Tensor Linear::operator()(const at::Tensor& x, std::span<const std::int64_t> offsets) const {
  if (backend_ == Backend::aten) return at::linear(x, weight_);
  at::Tensor y = at::empty({x.size(0), out_}, x.options());
  const bool widen = dtype_ == at::kBFloat16 && !has_bfloat16_products();
  const at::Tensor input = widen ? x.to(at::kFloat) : x.contiguous();
  const std::vector<std::int64_t> groups = group_sequences(offsets);
  const auto group_count = static_cast<std::int64_t>(groups.size()) - 1;
  parallel_for(static_cast<std::int64_t>(slices_.size()) * group_count, [&](std::int64_t i) {
    const Slice& slice = slices_[static_cast<std::size_t>(i / group_count)];
    const std::int64_t first = groups[static_cast<std::size_t>(i % group_count)];
    const std::int64_t last = groups[static_cast<std::size_t>(i % group_count + 1)];
    const auto part =
        offsets.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first + 1));
    if (widen) {
      widen_and_multiply_slice(slice, input, y, part);
    } else {
      multiply_slice(slice, input, y, part);
    }
  });
  return y;
}

}  // namespace sinkscope
