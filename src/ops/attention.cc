#include "ops/attention.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace sinkscope {
namespace {

at::Tensor uninitialised(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions(at::kFloat)); }

std::int64_t sequences_of(const AttentionLayout& layout) {
  return static_cast<std::int64_t>(layout.offsets.size()) - 1;
}

bool observes_queries(const AttentionRequest& request) {
  return request.columns || request.statistics || !request.map_heads.empty();
}

std::int64_t output_rows(const at::Tensor& q, const AttentionRequest& request) {
  return request.output_tokens == nullptr ? q.size(0)
                                          : static_cast<std::int64_t>(request.output_tokens->size());
}

// Mistakes of whoever calls.
void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionLayout& layout,
           const AttentionRequest& request) {
  TORCH_CHECK(k.sizes() == v.sizes() && k.size(0) == layout.offsets.back() && q.size(2) == k.size(2) &&
                  q.size(1) % k.size(1) == 0,
              "attention of ", q.sizes(), " to keys ", k.sizes(), " and values ", v.sizes());
  TORCH_CHECK(k.strides() == v.strides(), "keys and values must lie alike");
  for (const at::Tensor* t : {&q, &k})
    TORCH_CHECK(t->size(0) == 0 || (t->stride(2) == 1 && t->stride(1) == t->size(2)),
                "the heads of a token must lie side by side");
  if (request.query_tokens == nullptr) {
    TORCH_CHECK(q.size(0) == k.size(0), "without query_tokens there must be a query for every key");
    return;
  }
  const std::vector<std::int64_t>& queries = *request.query_tokens;
  TORCH_CHECK(static_cast<std::int64_t>(queries.size()) == q.size(0), "query_tokens must name each query");
  TORCH_CHECK(q.size(0) == k.size(0) || !observes_queries(request), "only all queries can be observed");
  if (request.output_tokens != nullptr && request.output_tokens != request.query_tokens)
    TORCH_CHECK(std::includes(queries.begin(), queries.end(), request.output_tokens->begin(),
                              request.output_tokens->end()),
                "output_tokens must be among query_tokens");
}

}  // namespace

void attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
               const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
               AttentionObservation& seen) {
  check(q, k, v, layout, request);
  begin_observation(layout, request, seen);
  if (backend == Backend::aten)
    attention_aten(q, k, v, layout, request, output, seen);
  else
    attention_cpu(cpu_kernels(), q, k, v, layout, request, output, seen);
}

void begin_observation(const AttentionLayout& layout, const AttentionRequest& request,
                       AttentionObservation& seen) {
  seen.empty_rows.assign(static_cast<std::size_t>(sequences_of(layout)), 0);
  seen.maps.clear();
  for (std::int64_t b = 0; b < sequences_of(layout); ++b)
    for (const std::int64_t head : request.map_heads) {
      const std::int64_t length = layout.offsets[b + 1] - layout.offsets[b];
      seen.maps[{b, head}] = uninitialised({length, length});
    }
}

AttentionResult attention(Backend backend, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                          const AttentionLayout& layout, const AttentionRequest& request) {
  AttentionResult result{at::empty({output_rows(q, request), q.size(1) * q.size(2)}, q.options()),
                         prepare_observation(q.size(1), layout, request)};
  attention(backend, q, k, v, layout, request, result.output, result.observation);
  return result;
}

AttentionObservation prepare_observation(std::int64_t heads, const AttentionLayout& layout,
                                         const AttentionRequest& request) {
  const auto tokens = static_cast<std::int64_t>(layout.query_class.size());
  AttentionObservation seen;
  if (request.columns) {
    seen.column_sum = uninitialised({query_classes, heads, tokens});
    seen.diagonal = uninitialised({heads, tokens});
    if (request.removed != nullptr) {
      seen.column_used = uninitialised({heads, tokens});
      seen.diagonal_used = uninitialised({heads, tokens});
    }
  }
  if (request.statistics) {
    seen.row_entropy = uninitialised({sequences_of(layout), query_classes, heads});
    seen.row_max = uninitialised({sequences_of(layout), query_classes, heads});
  }
  return seen;
}

}  // namespace sinkscope
