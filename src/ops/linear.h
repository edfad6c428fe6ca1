// The weights of matrix products, packed once.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <functional>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/product.h"
#include "ops/product_input.h"
#include "ops/row_plan.h"

namespace sinkscope {

struct LinearOptions {
  at::ScalarType dtype = at::kFloat;  // of inputs and results
  at::Device device = at::kCPU;
  /// Weights as 8-bit integers with a scale for each output column; CPU only.
  bool int8 = false;
  /// Slices hold whole multiples of this many columns: a head's width, where something is done per head.
  std::int64_t granule = 1;
  /// Called from any thread when rows [begin, begin + count) of the weight given have been copied and are not
  /// read again.
  std::function<void(std::int64_t begin, std::int64_t count)> copied = {};
};

/// Columns of the widest slice, unless a granule is wider.
inline constexpr std::int64_t widest_slice = 256;

/// The form in which inputs of this type reach the products of weights kept like this on the CPU, and what is
/// multiplied there: float32 for bfloat16 on a processor without bfloat16 products.
InputForm input_form(at::ScalarType dtype, bool int8);
ProductType product_type(at::ScalarType dtype, bool int8);

/// What a thread needs to multiply one slice.
struct SliceScratch {
  AlignedBuffer weight;  // the slice widened to float32
  AlignedBuffer sums;    // a result before it is cast
};

/// y = x W^T. On the CPU the output columns are cut into slices by the weight's shape alone, every slice is
/// packed once in the layout oneDNN wants and multiplied by one thread, piece by piece of a RowPlan: the bits
/// of a row depend neither on the number of threads nor on what else is in the batch.
///
/// bfloat16 on a processor without AVX512-BF16 instructions: the weights stay bfloat16 in memory and are
/// widened to float32 slice by slice as they are used, the product is rounded to bfloat16 (what the
/// instructions do, too).
///
/// int8: W is about weight_scale[n] * integers in -127..127, the scale from the column's largest weight; with
/// x about scale * (u - zero), y = scale * weight_scale[n] * (sum u w - zero * sum w), the sums exact.
class Linear {
 public:
  Linear() = default;
  /// weight [out, in] in float32, float16 or bfloat16 on the CPU. A weight used in place (no conversion, no
  /// packing) must outlive this object. Values that are not finite cannot be quantised: Error.
  Linear(Backend backend, const at::Tensor& weight, const LinearOptions& options);

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }
  at::ScalarType dtype() const { return dtype_; }
  Backend backend() const { return backend_; }
  /// The form that inputs must have; storage on the aten backend.
  InputForm input_form() const { return form_; }

  /// aten backend: [out, in].
  const at::Tensor& weight() const { return weight_; }

  // cpu backend, for the functions of projection.h and vocabulary_head.h:
  std::int64_t slice_count() const { return static_cast<std::int64_t>(slices_.size()); }
  std::int64_t slice_begin(std::int64_t slice) const { return slices_[slice].begin; }
  std::int64_t slice_width(std::int64_t slice) const { return slices_[slice].width; }
  /// The slice's weight as products take it; valid while scratch is not used for another one.
  const void* slice_weight(std::int64_t slice_index, SliceScratch& scratch) const;
  /// Rows `piece` of the input times the slice. result: [piece.rows, stride] in dtype(), the slice's columns
  /// from its first on.
  void multiply(std::int64_t slice_index, const void* slice_weight, const ProductInput& input, RowPiece piece,
                void* result, std::int64_t stride, SliceScratch& scratch) const;

 private:
  struct Slice {
    std::int64_t begin = 0;
    std::int64_t width = 0;
    std::byte* packed = nullptr;  // in packed_, in the layout of its product; null: rows of weight_ are used
    bool for_few_rows = false;    // in the layout of few_rows_kernels.h
  };
  void cut(std::int64_t granule);
  void pack(const at::Tensor& weight, const LinearOptions& options);
  void place_packed_slices();
  void pack_slice(Slice& slice, const at::Tensor& weight);
  void quantise_slice(Slice& slice, const at::Tensor& weight);
  void multiply_few_rows(const Slice& slice, const void* slice_weight, const void* x, std::int64_t rows,
                         void* result, std::int64_t stride, SliceScratch& scratch) const;
  void multiply_as_stored(const Slice& slice, const void* slice_weight, const void* x, std::int64_t rows,
                          void* result, std::int64_t stride, SliceScratch& scratch) const;
  ProductType type() const;

  Backend backend_ = Backend::cpu;
  at::ScalarType dtype_ = at::kFloat;
  InputForm form_ = InputForm::storage;  // which also tells how the weight is kept
  std::int64_t in_ = 0;
  std::int64_t out_ = 0;
  at::Tensor weight_;  // used where it lies or as converted: in place, widened at use, or on the aten backend
  /// Of all slices, one after the other: thousands of buffers between temporary ones would leave holes in the
  /// heap, up to a fourth of a model of small matrices.
  at::Tensor packed_;
  std::vector<Slice> slices_;
  std::vector<float> weight_scale_;       // [out], int8
  std::vector<std::int32_t> weight_sum_;  // [out], int8: sum of the column's integers
};

}  // namespace sinkscope
