#include "ops/attention.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

namespace sinkscope {

AttentionResult attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionLayout& layout, const AttentionRequest& request) {
  return backend == Backend::aten ? attention_aten(q, k, v, layout, request)
                                  : attention_cpu(q, k, v, layout, request);
}

AttentionObservation prepare_observation(std::int64_t heads, const AttentionLayout& layout,
                                         const AttentionRequest& request) {
  const auto tokens = static_cast<std::int64_t>(layout.query_class.size());
  const auto sequences = static_cast<std::int64_t>(layout.offsets.size()) - 1;
  const auto zeros = [](at::IntArrayRef shape) { return at::zeros(shape, at::TensorOptions(at::kFloat)); };
  AttentionObservation seen;
  seen.empty_rows.assign(static_cast<std::size_t>(sequences), 0);
  if (request.columns) {
    seen.column_sum = zeros({query_classes, heads, tokens});
    seen.diagonal = zeros({heads, tokens});
    if (request.removed != nullptr) {
      seen.column_used = zeros({heads, tokens});
      seen.diagonal_used = zeros({heads, tokens});
    }
  }
  if (request.statistics) {
    seen.row_entropy = zeros({sequences, query_classes, heads});
    seen.row_max = zeros({sequences, query_classes, heads});
  }
  for (std::int64_t b = 0; b < sequences; ++b)
    for (const std::int64_t head : request.map_heads) {
      const std::int64_t length = layout.offsets[b + 1] - layout.offsets[b];
      seen.maps[{b, head}] = at::empty({length, length}, at::TensorOptions(at::kFloat));
    }
  return seen;
}

void finish_statistics(AttentionObservation& observation, const AttentionLayout& layout) {
  if (!observation.row_entropy.defined()) return;
  for (std::int64_t b = 0; b < observation.row_entropy.size(0); ++b)
    for (std::int64_t c = 0; c < query_classes; ++c) {
      const auto first = layout.query_class.begin() + layout.offsets[b];
      const auto last = layout.query_class.begin() + layout.offsets[b + 1];
      const auto queries = static_cast<double>(std::count(first, last, static_cast<std::uint8_t>(c)));
      observation.row_entropy[b][c].div_(queries);  // 0 / 0 = NaN where the class has no query
      observation.row_max[b][c].div_(queries);
    }
}

}  // namespace sinkscope
