// The head of a language model and its loss in one: the logits of all rows never exist together.
#pragma once

#include <ATen/core/Tensor.h>

#include "ops/backend.h"
#include "ops/differentiable/matrix_product.h"

namespace sinkscope {

/// The R rows of hidden that are to predict something: masked positions, or all but the last. On the CPU.
struct PredictedRows {
  at::Tensor rows;     // int64 [R], of hidden; may repeat
  at::Tensor targets;  // int64 [R], of the vocabulary
  at::Tensor weights;  // float32 [R]
};

struct CrossEntropy {
  at::Tensor loss;        // sum_i weight_i CE_i, a scalar; 0 for no rows
  at::Tensor row_losses;  // CE_i float32 [R], detached
};

/// CE_i = log sum_v e^(l_iv) - l_(i, target_i) with l_i = head hidden_(row_i). hidden [N, W], head [V, W];
/// only the listed rows are multiplied.
///
/// On Backend::cpu the rows are taken in chunks whose logits fit 64 MB, and the gradients are made in the
/// forward pass while a chunk's logits are there: dl_i = weight_i (softmax(l_i) - onehot), dhidden = dl head,
/// dhead = dl^T hidden. The backward pass multiplies them by the gradient of the loss and can run once. The
/// factors of products (hidden, head, dl) are rounded to the precision, the softmax is float32.
CrossEntropy cross_entropy(Backend backend, const at::Tensor& hidden, const at::Tensor& head,
                           const PredictedRows& predicted, ProductPrecision precision);

}  // namespace sinkscope
