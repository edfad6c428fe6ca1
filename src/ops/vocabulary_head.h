// The output matrix and what a sampler wants to know of its logits, without keeping them.
#pragma once

#include <sinkscope/vocabulary.h>

#include "ops/linear.h"

namespace sinkscope {

/// x [N, in] times the head's [V, in], cast to the dtype, slice by slice: only a slice of the logits exists
/// at a time. Partial sums are joined in the order of the ids.
VocabularyRows vocabulary_head(const Linear& head, const ProductInput& x, const RowPlan& rows,
                               const VocabularyOptions& options);

/// u + (c - u) (guidance + 1) in libtorch's operations, each step cast to the dtype. Same shapes.
at::Tensor guided_logits(const at::Tensor& conditional, const at::Tensor& unconditional, double guidance);

/// The most bytes that its partial results take for this many rows.
std::int64_t head_parts_bytes(std::int64_t rows);

/// The whole logits [N, V] in the head's dtype.
at::Tensor vocabulary_logits(const Linear& head, const ProductInput& x, const RowPlan& rows);

}  // namespace sinkscope
