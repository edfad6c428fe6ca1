// Matrix products with weights that stay.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <span>
#include <vector>

#include "ops/backend.h"

namespace sinkscope {

/// y = x W^T. On the CPU the output columns are cut into slices by the weight's shape alone, every slice is
/// packed once in the layout oneDNN wants and multiplied by one thread, sequence by sequence: the bits of a
/// row depend neither on the number of threads nor on what else is in the batch.
///
/// bfloat16 on a processor without AVX512-BF16 instructions: the weights stay bfloat16 in memory and are
/// widened to float32 slice by slice as they are used, the product is rounded to bfloat16 (what the
/// instructions do, too).
class Linear {
 public:
  Linear() = default;
  /// weight [out, in] in float32, float16 or bfloat16 on the CPU; it is converted to `dtype` and moved to
  /// `device` when it is not there already. A weight used in place (no conversion, no packing) must outlive
  /// this object.
  Linear(Backend backend, const at::Tensor& weight, at::ScalarType dtype, const at::Device& device);

  /// x [N, in] in the dtype of this object; offsets [sequences + 1] cut the N rows into sequences. -> [N,
  /// out]
  at::Tensor operator()(const at::Tensor& x, std::span<const std::int64_t> offsets) const;

  std::int64_t in_features() const { return in_; }
  std::int64_t out_features() const { return out_; }
  /// Whether the weight given was copied, so that its own memory may be let go.
  bool owns_weight() const { return owns_weight_; }

 private:
  struct Slice {
    std::int64_t begin = 0;
    std::int64_t width = 0;
    dnnl::memory packed;  // in the layout of its Product; empty when the weight is used in place or widened
  };
  void pack(const at::Tensor& weight);
  void multiply_slice(const Slice& slice, const at::Tensor& x, at::Tensor& y,
                      std::span<const std::int64_t> offsets) const;
  void widen_and_multiply_slice(const Slice& slice, const at::Tensor& wide_x, at::Tensor& y,
                                std::span<const std::int64_t> offsets) const;

  Backend backend_ = Backend::cpu;
  at::ScalarType dtype_ = at::kFloat;
  std::int64_t in_ = 0;
  std::int64_t out_ = 0;
  bool owns_weight_ = false;
  at::Tensor weight_;  // kept when used in place, widened at use, or on the aten backend
  std::vector<Slice> slices_;
};

/// Whether this processor multiplies bfloat16 itself (and oneDNN knows how).
bool has_bfloat16_products();

}  // namespace sinkscope
