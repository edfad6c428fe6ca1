// Products with weights that are trained.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "ops/backend.h"
#include "ops/differentiable/matrix_product.h"

namespace sinkscope {

/// y_i = x W_i^T + b_i for several weights at once, so that x is rounded once and its gradient is one sum:
/// queries, keys and values; gate and up. x [..., in], W_i [out_i, in], b_i [out_i]; `biases` is empty or has
/// one for every weight. y_i [..., out_i].
///
/// Gradients: dx = sum_i dy_i W_i, dW_i = dy_i^T x, db_i = sum of the rows of dy_i. On Backend::cpu x, W and
/// dy are rounded to the precision, sums are float32, and the rounded x and W are all that is kept for the
/// backward pass. On Backend::aten bf16 rounds the results, too.
std::vector<at::Tensor> linear(Backend backend, const at::Tensor& x, at::TensorList weights,
                               at::TensorList biases, ProductPrecision precision);

/// The same for one weight; `bias` may be undefined.
at::Tensor linear(Backend backend, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  ProductPrecision precision);

}  // namespace sinkscope
