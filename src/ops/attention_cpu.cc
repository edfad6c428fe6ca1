// One thread takes a whole (sequence, query head), so that its column sums are added in one order: the bits
// depend neither on the number of threads nor on what else is in the batch.
#include <algorithm>
#include <atomic>
#include <bit>
#include <limits>

#include "ops/aligned_buffer.h"
#include "ops/attention.h"
#include "ops/attention_kernels.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

static_assert(column_classes == query_classes);

// Everything that the heads of one call share.
struct Call {
  const CpuKernels& kernels;
  const at::Tensor& q;
  const at::Tensor& k;
  const at::Tensor& v;
  const AttentionLayout& layout;
  const AttentionRequest& request;
  at::Tensor& output;
  AttentionObservation& seen;
  std::vector<std::int64_t> key_offsets;
};

struct HeadTask {
  std::int64_t sequence, head;
  std::int64_t first, length;  // tokens
  KeyRange keys;
  std::int64_t first_key;  // among all keys, as observations and removed keys are numbered
};

// Where the tokens of a sequence stand in an ascending list; in none, every token stands at its own index.
struct Rows {
  const std::int64_t* tokens = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
};

Rows rows_of(const std::vector<std::int64_t>* tokens, const HeadTask& task) {
  if (tokens == nullptr) return {nullptr, task.first, task.length};
  const auto first = std::lower_bound(tokens->begin(), tokens->end(), task.first);
  const auto last = std::lower_bound(first, tokens->end(), task.first + task.length);
  // An empty list is not the same as none, which a null pointer would say.
  static constexpr std::int64_t nowhere = 0;
  const std::int64_t* own = tokens->empty() ? &nowhere : tokens->data() + (first - tokens->begin());
  return {own, first - tokens->begin(), last - first};
}

// Null where none of this head's keys is removed.
const std::uint8_t* removed_keys(const Call& call, const HeadTask& task) {
  if (call.request.removed == nullptr) return nullptr;
  const std::uint8_t* of_head = call.request.removed + task.head * call.key_offsets.back() + task.first_key;
  const bool any = std::any_of(of_head, of_head + task.keys.count, [](std::uint8_t r) { return r != 0; });
  return any ? of_head : nullptr;
}

// Likewise where no query of the sequence loses any.
const std::int32_t* row_removed_keys(const Call& call, const HeadTask& task) {
  const RowKeys& lists = call.request.row_removed;
  if (lists.keys == nullptr || lists.room == 0) return nullptr;
  const std::int32_t* first = lists.keys + (task.head * call.layout.offsets.back() + task.first) * lists.room;
  for (std::int64_t i = 0; i < task.length; ++i)
    if (first[i * lists.room] != no_key) return first;
  return nullptr;
}

// Null in an empty tensor.
template <typename T>
T* element(const at::Tensor& tensor, std::int64_t token, std::int64_t offset) {
  return tensor.numel() == 0 ? nullptr : storage_of<T>(tensor) + token * tensor.stride(0) + offset;
}

template <typename T>
void describe_lists(const RowRequest& rows, const HeadTask& task, AttentionHead<T>& head) {
  head.most = rows.most;
  head.least = rows.least;
  head.without_self = rows.without_self;
  head.as_used = rows.as_used;
  if (rows.listed != nullptr) head.listed = rows.listed + task.first_key;
  const RowThreshold threshold = row_threshold(rows, task.keys.count);
  head.slope = threshold.slope;
  head.offset = threshold.offset;
}

template <typename T>
AttentionHead<T> describe(const Call& call, const HeadTask& task) {
  const std::int64_t width = call.q.size(2);
  const std::int64_t kv_head = task.head / (call.q.size(1) / call.k.size(1));
  const Rows queries = rows_of(call.request.query_tokens, task);
  const Rows outputs =
      call.request.output_tokens == nullptr ? queries : rows_of(call.request.output_tokens, task);
  AttentionHead<T> head;
  head.keys = task.keys.count;
  head.queries = queries.count;
  head.width = width;
  head.query_stride = call.q.stride(0);
  head.key_stride = call.k.stride(0);
  head.output_stride = call.output.stride(0);
  head.q = element<T>(call.q, queries.first, task.head * width);
  head.k = element<T>(call.k, task.keys.begin, kv_head * width);
  head.v = element<T>(call.v, task.keys.begin, kv_head * width);
  head.output = element<T>(call.output, outputs.first, task.head * width);
  head.first_token = task.first;
  head.first_position = task.keys.first_query;
  head.causal = call.layout.causal;
  head.window = call.layout.window;
  head.query_tokens = queries.tokens;
  head.output_tokens = outputs.tokens;
  head.outputs = outputs.count;
  head.query_class = call.layout.query_class.data() + task.first;
  head.removed = removed_keys(call, task);
  head.row_removed = row_removed_keys(call, task);
  head.row_room = call.request.row_removed.room;
  head.action = call.request.change.action;
  head.eta = static_cast<float>(call.request.change.eta);
  describe_lists(call.request.rows, task, head);
  return head;
}

// The slice of the head's keys in a tensor [H, K] or, of a query class, [3, H, K], zeroed.
float* zeroed(const at::Tensor& tensor, const HeadTask& task, std::int64_t query_class = 0) {
  float* slice = tensor.data_ptr<float>() + query_class * tensor.stride(0) + task.head * tensor.stride(-2) +
                 task.first_key;
  std::fill_n(slice, task.keys.count, 0.0F);
  return slice;
}

// Of the sequence's first token, in a tensor [H, N, room].
std::int32_t* lists_of(const at::Tensor& tensor, const HeadTask& task) {
  return tensor.data_ptr<std::int32_t>() + task.head * tensor.stride(0) + task.first * tensor.stride(1);
}

HeadObservation observe(const Call& call, const HeadTask& task, bool removes) {
  HeadObservation seen;
  if (call.request.columns) {
    for (std::int64_t c = 0; c < query_classes; ++c)
      seen.column_sum[c] = zeroed(call.seen.column_sum, task, c);
    seen.diagonal = zeroed(call.seen.diagonal, task);
  }
  if (call.request.columns && removes && call.seen.column_used.defined()) {
    seen.column_used = zeroed(call.seen.column_used, task);
    seen.diagonal_used = zeroed(call.seen.diagonal_used, task);
  }
  seen.statistics = call.request.statistics;
  const auto map = call.seen.maps.find({task.sequence, task.head});
  if (map != call.seen.maps.end()) seen.map = map->second.data_ptr<float>();
  const RowRequest& rows = call.request.rows;
  if (rows.most > 0) seen.most = lists_of(call.seen.row_most, task);
  if (rows.least > 0) seen.least = lists_of(call.seen.row_least, task);
  if (rows.last)
    seen.last_row =
        call.seen.last_row.data_ptr<float>() + task.head * call.seen.last_row.stride(0) + task.first_key;
  if (rows.changed_share) {
    seen.changed_share = call.seen.changed_share.data_ptr<float>() +
                         task.head * call.seen.changed_share.stride(0) + task.first;
    std::fill_n(seen.changed_share, task.length, 0.0F);
  }
  return seen;
}

// Where keys are removed from the layer but none from this head, as used equals raw.
void copy_raw_to_used(const Call& call, const HeadTask& task, const HeadObservation& seen) {
  float* used = zeroed(call.seen.column_used, task);
  for (const float* raw : seen.column_sum)
    for (std::int64_t j = 0; j < task.keys.count; ++j) used[j] += raw[j];
  std::copy_n(seen.diagonal, task.keys.count, zeroed(call.seen.diagonal_used, task));
}

// Sums over the queries of each class into means, NaN where it has none.
void write_statistics(const Call& call, const HeadTask& task, const HeadObservation& seen) {
  const std::uint8_t* classes = call.layout.query_class.data() + task.first;
  const auto write = [&](const at::Tensor& means, std::int64_t c, double sum, double queries) {
    float* cell = means.data_ptr<float>() + task.sequence * means.stride(0) + c * means.stride(1);
    cell[task.head * means.stride(2)] =
        queries == 0 ? std::numeric_limits<float>::quiet_NaN() : static_cast<float>(sum / queries);
  };
  for (std::int64_t c = 0; c < query_classes; ++c) {
    const auto queries =
        static_cast<double>(std::count(classes, classes + task.length, static_cast<std::uint8_t>(c)));
    write(call.seen.row_entropy, c, seen.entropy[c], queries);
    write(call.seen.row_max, c, seen.row_max[c], queries);
  }
}

// Kept by the thread between heads and calls.
std::byte* thread_workspace(std::size_t bytes) {
  thread_local AlignedBuffer buffer;
  return buffer.get<std::byte>(bytes);
}

float to_float(float value) { return value; }
float to_float(Bfloat16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

// Over all keys of the head, float32.
template <typename T>
std::vector<float> mean_value(const AttentionHead<T>& head) {
  std::vector<float> mean(static_cast<std::size_t>(head.width), 0.0F);
  for (std::int64_t j = 0; j < head.keys; ++j)
    for (std::int64_t d = 0; d < head.width; ++d)
      mean[static_cast<std::size_t>(d)] += to_float(head.v[j * head.key_stride + d]);
  for (float& value : mean) value /= static_cast<float>(head.keys);
  return mean;
}

template <typename T>
void attend_head(const Call& call, const HeadTask& task) {
  AttentionHead<T> head = describe<T>(call, task);
  std::vector<float> mean;
  const bool changes = head.removed != nullptr || head.row_removed != nullptr;
  if (changes && head.action == KeyAction::value_mean) {
    mean = mean_value(head);
    head.mean_value = mean.data();
  }
  const AttentionKernels<T>& kernels = attention_kernels<T>(call.kernels);
  HeadObservation seen = observe(call, task, changes);
  if (head.queries > 0)
    kernels.attend(head, seen, thread_workspace(kernels.workspace_bytes(head.keys, head.width)));
  if (call.request.columns && call.seen.column_used.defined() && !changes) copy_raw_to_used(call, task, seen);
  if (call.request.statistics) write_statistics(call, task, seen);
  if (seen.empty_rows > 0)
    std::atomic_ref(call.seen.empty_rows[static_cast<std::size_t>(task.sequence)]) += seen.empty_rows;
}

}  // namespace

void attention_cpu(const CpuKernels& kernels, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                   const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
                   AttentionObservation& seen) {
  const Call call{kernels, q, k, v, layout, request, output, seen, layout.key_offsets()};
  const std::int64_t heads = q.size(1);
  with_storage(q.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_for(layout.sequences() * heads, [&](std::int64_t i) {
      const std::int64_t b = i / heads;
      attend_head<T>(call, {b, i % heads, layout.offsets[b], layout.offsets[b + 1] - layout.offsets[b],
                            layout.keys_of(b), call.key_offsets[static_cast<std::size_t>(b)]});
    });
  });
}

}  // namespace sinkscope
