#include "ops/unseen_keys.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_or.h>

namespace sinkscope {

at::Tensor unseen_keys(const at::Tensor& query_positions, std::int64_t keys, std::int64_t window,
                       std::int64_t prefix) {
  const at::Tensor query = query_positions.unsqueeze(1);
  const at::Tensor key = at::arange(keys, query_positions.options());
  at::Tensor unseen = key > query;
  if (window > 0) unseen = at::logical_or(unseen, key <= query - window);
  return prefix > 0 ? at::logical_and(unseen, key >= prefix) : unseen;
}

}  // namespace sinkscope
