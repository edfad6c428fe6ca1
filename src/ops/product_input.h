// The left side of matrix products, in the form that the weights want.
#pragma once

#include "ops/backend.h"

namespace sinkscope {

enum class InputForm {
  storage,    ///< as computed: float32 or bfloat16
  widened,    ///< bfloat16 values in float32, for a processor that does not multiply bfloat16
  quantised,  ///< unsigned 8-bit integers with a scale and a zero of each row
};

/// N rows. Quantised: x is about scale * (values - zero), the scale and zero of each row chosen so that its
/// smallest and largest value (and 0) are the ends of the range.
struct ProductInput {
  InputForm form = InputForm::storage;
  at::Tensor values;  // [N, width] in the storage dtype, float32 or uint8
  at::Tensor scale;   // float32 [N], quantised only
  at::Tensor zero;    // int32 [N], quantised only
};

/// Largest quantised value: 255, or 127 on a processor without exact products of 8-bit integers.
int quantised_levels();

/// The rows of x [N, width] as they are, in the form of `input`, whose tensors the caller has made.
void prepare_input(Backend backend, const at::Tensor& x, ProductInput& input);

/// The same for the rows' root mean square norm: cast(x / sqrt(mean(x^2) + eps)) * weight over the last
/// dimension; x [N, width], weight [width] in the same dtype. Statistics in float32, the normalised value is
/// cast to that dtype before the product with the weight.
void prepare_normed(Backend backend, const at::Tensor& x, const at::Tensor& weight, double eps,
                    ProductInput& input);

}  // namespace sinkscope
