#include "ops/linear.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "ops/parallel.h"

namespace sinkscope {
namespace {

// Wide slices amortise the packing of x, narrow ones let small matrices use all threads. Whole granules.
std::int64_t slice_width_for(std::int64_t out_features, std::int64_t granule) {
  const std::int64_t wanted = out_features >= 2048 ? widest_slice : 64;
  return std::min(out_features, std::max(wanted / granule, std::int64_t{1}) * granule);
}

constexpr float largest_int8 = 127;
constexpr std::int64_t longest_int8_sum = 66000;  // 255 * 127 of them stay below 2^31

}  // namespace

InputForm input_form(at::ScalarType dtype, bool int8) {
  if (int8) return InputForm::quantised;
  return dtype == at::kBFloat16 && !has_bfloat16_products() ? InputForm::widened : InputForm::storage;
}

ProductType product_type(at::ScalarType dtype, bool int8) {
  if (int8) return ProductType::int8;
  return dtype == at::kBFloat16 && has_bfloat16_products() ? ProductType::bf16 : ProductType::f32;
}

Linear::Linear(Backend backend, const at::Tensor& weight, const LinearOptions& options)
    : backend_(backend), dtype_(options.dtype), in_(weight.size(1)), out_(weight.size(0)) {
  if (backend == Backend::aten) {
    weight_ = weight.to(options.device, options.dtype).contiguous();
    if (options.copied && weight_.data_ptr() != weight.data_ptr()) options.copied(0, out_);
    return;
  }
  if (options.int8 && in_ > longest_int8_sum)
    throw Error("a sum of {} products of 8-bit integers may not fit 32 bits: at most {} do", in_,
                longest_int8_sum);
  form_ = sinkscope::input_form(dtype_, options.int8);
  cut(options.granule);
  pack(weight.contiguous(), options);
}

ProductType Linear::type() const { return product_type(dtype_, form_ == InputForm::quantised); }

void Linear::cut(std::int64_t granule) {
  const std::int64_t width = slice_width_for(out_, granule);
  for (std::int64_t begin = 0; begin < out_; begin += width)
    slices_.push_back({begin, std::min(width, out_ - begin), nullptr, false});
}

// Converts slice by slice, so that no second copy of the whole matrix ever exists.
void Linear::pack(const at::Tensor& weight, const LinearOptions& options) {
  const at::ScalarType stored = form_ == InputForm::quantised ? at::kChar : dtype_;
  const bool keeps_rows =
      form_ == InputForm::widened || std::any_of(slices_.begin(), slices_.end(), [&](const Slice& slice) {
        return weight_layout(type(), slice.width, in_).in_place;
      });
  const bool as_it_lies = keeps_rows && weight.scalar_type() == stored;
  if (as_it_lies)
    weight_ = weight;
  else if (keeps_rows)
    weight_ = at::empty({out_, in_}, at::TensorOptions(stored));
  if (form_ == InputForm::quantised) {
    weight_scale_.resize(static_cast<std::size_t>(out_));
    weight_sum_.resize(static_cast<std::size_t>(out_));
  }
  place_packed_slices();
  parallel_for(slice_count(), [&](std::int64_t i) {
    const c10::InferenceMode no_autograd;  // a thread's own; weight_ may have been made under the caller's
    if (form_ == InputForm::quantised)
      quantise_slice(slices_[i], weight);
    else
      pack_slice(slices_[i], weight);
    if (options.copied && !as_it_lies) options.copied(slices_[i].begin, slices_[i].width);
  });
}

void Linear::place_packed_slices() {
  if (form_ == InputForm::widened) return;
  constexpr std::int64_t alignment = 64;  // a cache line, the widest vector
  std::vector<std::int64_t> begins;
  std::int64_t bytes = 0;
  for (const Slice& slice : slices_) {
    const WeightLayout& layout = weight_layout(type(), slice.width, in_);
    const auto size = static_cast<std::int64_t>(layout.description.get_size());
    begins.push_back(layout.in_place ? -1 : bytes);
    if (!layout.in_place) bytes += (size + alignment - 1) / alignment * alignment;
  }
  packed_ = at::empty({bytes}, at::TensorOptions(at::kByte));
  for (std::size_t i = 0; i < slices_.size(); ++i)
    if (begins[i] >= 0) slices_[i].packed = static_cast<std::byte*>(packed_.data_ptr()) + begins[i];
}

void Linear::pack_slice(Slice& slice, const at::Tensor& weight) {
  const at::Tensor rows = weight.narrow(0, slice.begin, slice.width);
  const bool in_place = form_ == InputForm::widened || weight_layout(type(), slice.width, in_).in_place;
  if (!in_place) {
    pack_weight(rows.to(dtype_).data_ptr(), type(), slice.width, in_, slice.packed);
    slice.for_few_rows = weight_layout(type(), slice.width, in_).in_pairs_of_64_columns;
  } else if (weight_.data_ptr() != weight.data_ptr()) {
    weight_.narrow(0, slice.begin, slice.width).copy_(rows);
  }
}

void Linear::quantise_slice(Slice& slice, const at::Tensor& weight) {
  const at::Tensor rows = weight.narrow(0, slice.begin, slice.width).to(at::kFloat);
  const bool in_place = weight_layout(ProductType::int8, slice.width, in_).in_place;
  const at::Tensor integers = in_place ? weight_.narrow(0, slice.begin, slice.width)
                                       : at::empty({slice.width, in_}, at::TensorOptions(at::kChar));
  for (std::int64_t r = 0; r < slice.width; ++r) {
    const float* from = rows.data_ptr<float>() + r * in_;
    auto* to = integers.data_ptr<std::int8_t>() + r * in_;
    float largest = 0;
    bool finite = true;
    for (std::int64_t i = 0; i < in_; ++i) {
      largest = std::max(largest, std::abs(from[i]));
      finite = finite && std::isfinite(from[i]);
    }
    if (!finite)
      throw Error("row {} holds a value that is not finite: it cannot be quantised", slice.begin + r);
    const float inverse = largest > 0 ? largest_int8 / largest : 0;
    std::int32_t sum = 0;
    for (std::int64_t i = 0; i < in_; ++i) {
      to[i] = static_cast<std::int8_t>(std::lrintf(from[i] * inverse));
      sum += to[i];
    }
    weight_scale_[static_cast<std::size_t>(slice.begin + r)] = largest / largest_int8;
    weight_sum_[static_cast<std::size_t>(slice.begin + r)] = sum;
  }
  if (!in_place) pack_weight(integers.data_ptr(), ProductType::int8, slice.width, in_, slice.packed);
}

const void* Linear::slice_weight(std::int64_t slice_index, SliceScratch& scratch) const {
  const Slice& slice = slices_[slice_index];
  if (slice.packed != nullptr) return slice.packed;
  const auto* rows =
      static_cast<const std::byte*>(weight_.data_ptr()) + slice.begin * in_ * weight_.element_size();
  if (form_ != InputForm::widened) return rows;
  auto* wide = scratch.weight.get<float>(static_cast<std::size_t>(slice.width * in_));
  cpu_kernels().bf16.widen(static_cast<const Bfloat16*>(static_cast<const void*>(rows)), wide,
                           slice.width * in_);
  return wide;
}

void Linear::multiply_few_rows(const Slice& slice, const void* slice_weight, const void* x, std::int64_t rows,
                               void* result, std::int64_t stride, SliceScratch& scratch) const {
  const std::int64_t panels = (slice.width + few_rows_panel - 1) / few_rows_panel;
  const std::int64_t padded = panels * few_rows_panel;
  auto* sums = scratch.sums.get<float>(static_cast<std::size_t>(rows * padded));
  cpu_kernels().multiply_few_rows(static_cast<const Bfloat16*>(x), rows, in_,
                                  static_cast<const Bfloat16*>(slice_weight), panels, sums);
  for (std::int64_t row = 0; row < rows; ++row)
    cpu_kernels().bf16.narrow(sums + row * padded, static_cast<Bfloat16*>(result) + row * stride,
                              slice.width);
}

// With a packed weight and rows of the result apart from each other, oneDNN 2.6 falls back to its reference
// implementation, which is slower by orders of magnitude: such products are made dense and copied.
void Linear::multiply_as_stored(const Slice& slice, const void* slice_weight, const void* x,
                                std::int64_t rows, void* result, std::int64_t stride,
                                SliceScratch& scratch) const {
  if (slice.for_few_rows && rows <= most_few_rows)
    return multiply_few_rows(slice, slice_weight, x, rows, result, stride, scratch);
  if (slice.packed == nullptr || stride == slice.width) {
    sinkscope::multiply({type(), rows, slice.width, in_, stride}, x, slice_weight, result);
    return;
  }
  const std::size_t value = c10::elementSize(dtype_);
  const std::size_t row_bytes = static_cast<std::size_t>(slice.width) * value;
  auto* dense = scratch.sums.get<std::byte>(static_cast<std::size_t>(rows) * row_bytes);
  sinkscope::multiply({type(), rows, slice.width, in_, slice.width}, x, slice_weight, dense);
  for (std::int64_t row = 0; row < rows; ++row)
    std::memcpy(static_cast<std::byte*>(result) + static_cast<std::size_t>(row * stride) * value,
                dense + static_cast<std::size_t>(row) * row_bytes, row_bytes);
}

void Linear::multiply(std::int64_t slice_index, const void* slice_weight, const ProductInput& input,
                      RowPiece piece, void* result, std::int64_t stride, SliceScratch& scratch) const {
  const Slice& slice = slices_[slice_index];
  const auto* x = static_cast<const std::byte*>(input.values.data_ptr()) +
                  piece.begin * in_ * input.values.element_size();
  const CpuKernels& kernels = cpu_kernels();
  if (form_ == InputForm::storage) {
    multiply_as_stored(slice, slice_weight, x, piece.rows, result, stride, scratch);
    return;
  }
  // A slice that has just been widened is in rows, also where oneDNN would rather have it packed.
  const ProductShape shape{type(), piece.rows, slice.width, in_, slice.width, form_ == InputForm::widened};
  if (form_ == InputForm::widened) {
    auto* sums = scratch.sums.get<float>(static_cast<std::size_t>(piece.rows * slice.width));
    sinkscope::multiply(shape, x, slice_weight, sums);
    for (std::int64_t row = 0; row < piece.rows; ++row)
      kernels.bf16.narrow(sums + row * slice.width, static_cast<Bfloat16*>(result) + row * stride,
                          slice.width);
    return;
  }
  auto* sums = scratch.sums.get<std::int32_t>(static_cast<std::size_t>(piece.rows * slice.width));
  sinkscope::multiply(shape, x, slice_weight, sums);
  with_storage(dtype_, [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    for (std::int64_t row = 0; row < piece.rows; ++row)
      storage_kernels<T>(kernels).scale_sums(sums + row * slice.width, weight_scale_.data() + slice.begin,
                                             weight_sum_.data() + slice.begin,
                                             input.scale.data_ptr<float>()[piece.begin + row],
                                             input.zero.data_ptr<std::int32_t>()[piece.begin + row],
                                             static_cast<T*>(result) + row * stride, slice.width);
  });
}

}  // namespace sinkscope
