#include "ops/attention.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <limits>

namespace sinkscope {
namespace {

at::Tensor uninitialised(at::IntArrayRef shape) { return at::empty(shape, at::TensorOptions(at::kFloat)); }

bool observes_queries(const AttentionRequest& request) {
  return request.columns || request.statistics || request.rows.asks() || !request.map_heads.empty();
}

std::int64_t output_rows(const at::Tensor& q, const AttentionRequest& request) {
  return request.output_tokens == nullptr ? q.size(0)
                                          : static_cast<std::int64_t>(request.output_tokens->size());
}

// Mistakes of whoever calls.
void check(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionLayout& layout,
           const AttentionRequest& request) {
  TORCH_CHECK(k.sizes() == v.sizes() && q.size(2) == k.size(2) && q.size(1) % k.size(1) == 0, "attention of ",
              q.sizes(), " to keys ", k.sizes(), " and values ", v.sizes());
  for (std::int64_t b = 0; b < layout.sequences(); ++b) {
    const KeyRange keys = layout.keys_of(b);
    TORCH_CHECK(keys.begin + keys.count <= k.size(0) &&
                    keys.first_query + layout.offsets[b + 1] - layout.offsets[b] <= keys.count,
                "sequence ", b, " has queries or keys beyond the rows given");
  }
  TORCH_CHECK(request.removed == nullptr || request.row_removed.keys == nullptr,
              "keys are changed for all queries or for single ones");
  TORCH_CHECK(!layout.causal || (request.rows.most == 0 && request.rows.least == 0),
              "lists of keys are made of rows that see all of them");
  TORCH_CHECK(k.strides() == v.strides(), "keys and values must lie alike");
  for (const at::Tensor* t : {&q, &k})
    TORCH_CHECK(t->size(0) == 0 || (t->stride(2) == 1 && t->stride(1) == t->size(2)),
                "the heads of a token must lie side by side");
  if (request.query_tokens == nullptr) {
    TORCH_CHECK(q.size(0) == layout.offsets.back(),
                "without query_tokens there must be a query for every token");
    return;
  }
  const std::vector<std::int64_t>& queries = *request.query_tokens;
  TORCH_CHECK(static_cast<std::int64_t>(queries.size()) == q.size(0), "query_tokens must name each query");
  TORCH_CHECK(q.size(0) == layout.offsets.back() || !observes_queries(request),
              "only all queries can be observed");
  if (request.output_tokens != nullptr && request.output_tokens != request.query_tokens)
    TORCH_CHECK(std::includes(queries.begin(), queries.end(), request.output_tokens->begin(),
                              request.output_tokens->end()),
                "output_tokens must be among query_tokens");
}

}  // namespace

// f a > f (sum - a) / (n - 1) + epsilon, both sides apart by more than the guard's share of the larger one
RowThreshold row_threshold(const RowRequest& rows, std::int64_t keys) {
  if (rows.every_key) return {0, -1};
  constexpr double guard = 1e-6;  // of src/sinks/ranking.h, too
  const auto others = static_cast<double>(keys - (rows.without_self ? 2 : 1));
  if (others < 1) return {0, std::numeric_limits<double>::infinity()};
  const double factor = rows.on_sums ? static_cast<double>(keys) : 1;
  const double divisor = 1 - guard + 1 / others;
  return {1 / others / divisor, rows.epsilon / factor / divisor};
}

KeyRange AttentionLayout::keys_of(std::int64_t sequence) const {
  if (!keys.empty()) return keys[static_cast<std::size_t>(sequence)];
  const std::int64_t first = offsets[static_cast<std::size_t>(sequence)];
  return {first, offsets[static_cast<std::size_t>(sequence) + 1] - first, 0};
}

std::vector<std::int64_t> AttentionLayout::key_offsets() const {
  std::vector<std::int64_t> first{0};
  for (std::int64_t b = 0; b < sequences(); ++b) first.push_back(first.back() + keys_of(b).count);
  return first;
}

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
  seen.empty_rows.assign(static_cast<std::size_t>(layout.sequences()), 0);
  seen.maps.clear();
  for (std::int64_t b = 0; b < layout.sequences(); ++b)
    for (const std::int64_t head : request.map_heads) {
      const std::int64_t length = layout.offsets[b + 1] - layout.offsets[b];
      seen.maps[{b, head}] = uninitialised({length, layout.keys_of(b).count});
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
  const std::int64_t keys = layout.key_offsets().back();
  AttentionObservation seen;
  if (request.columns) {
    seen.column_sum = uninitialised({query_classes, heads, keys});
    seen.diagonal = uninitialised({heads, keys});
    if (request.removed != nullptr || request.row_removed.keys != nullptr) {
      seen.column_used = uninitialised({heads, keys});
      seen.diagonal_used = uninitialised({heads, keys});
    }
  }
  if (request.statistics) {
    seen.row_entropy = uninitialised({layout.sequences(), query_classes, heads});
    seen.row_max = uninitialised({layout.sequences(), query_classes, heads});
  }
  const std::int64_t queries = layout.offsets.back();
  const auto lists = [&](std::int64_t room) {
    return room == 0 ? at::Tensor() : at::empty({heads, queries, room}, at::TensorOptions(at::kInt));
  };
  seen.row_most = lists(request.rows.most);
  seen.row_least = lists(request.rows.least);
  if (request.rows.last) seen.last_row = uninitialised({heads, keys}).zero_();
  if (request.rows.changed_share) seen.changed_share = uninitialised({heads, queries});
  return seen;
}

}  // namespace sinkscope
