// One thread takes a whole (sequence, query head): its column sums are added query by query, in order. Scores
// exist for query_tile queries of one head at a time.
#include <ATen/ops/empty.h>
#include <dnnl.h>

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/parallel.h"

namespace sinkscope {
namespace {

constexpr std::int64_t query_tile = 32;

// Row-major C [m, n] = A [m, k] B, B being [k, n] or, transposed, [n, k].
void multiply_floats(bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const float* a,
                     const float* b, float* c) {
  const dnnl_status_t status =
      dnnl_sgemm('N', transpose_b ? 'T' : 'N', m, n, k, 1.0F, a, k, b, transpose_b ? k : n, 0.0F, c, n);
  TORCH_CHECK(status == dnnl_success, "dnnl_sgemm failed with status ", static_cast<int>(status));
}

// One head of one sequence in float32, and room for a tile. Kept by the thread between heads.
struct HeadBuffers {
  std::vector<float> q, k, v;  // [S, D]
  std::vector<float> keep;     // [S]
  std::vector<float> scores;   // [query_tile, S]
  std::vector<float> raw_row;  // [S]
  std::vector<float> out;      // [query_tile, D]
};

struct HeadTask {
  std::int64_t sequence, head, first, length;
};

// Rows of one head out of [N, heads, D] into [S, D].
template <typename T>
void gather_head(const at::Tensor& from, std::int64_t head, const HeadTask& task, std::vector<float>& to) {
  const std::int64_t width = from.size(2);
  to.resize(static_cast<std::size_t>(task.length * width));
  const T* source = storage_of<T>(from) + (task.first * from.size(1) + head) * width;
  for (std::int64_t i = 0; i < task.length; ++i)
    storage_kernels<T>(cpu_kernels()).widen(source + i * from.size(1) * width, to.data() + i * width, width);
}

float* at_or_null(const at::Tensor& tensor, std::int64_t offset) {
  return tensor.defined() ? tensor.data_ptr<float>() + offset : nullptr;
}

// Softmax of one query row and all the sums it feeds.
void observe_row(const HeadTask& task, std::int64_t query, float scale, float* scores, HeadBuffers& buffers,
                 const AttentionLayout& layout, std::int64_t heads, AttentionObservation& seen) {
  const auto tokens = static_cast<std::int64_t>(layout.query_class.size());
  const std::int64_t query_class = layout.query_class[task.first + query];
  const std::int64_t column = task.head * tokens + task.first;
  const auto map = seen.maps.find({task.sequence, task.head});
  ColumnSinks sinks;
  sinks.raw = at_or_null(seen.column_sum, query_class * heads * tokens + column);
  sinks.used = at_or_null(seen.column_used, column);
  sinks.statistics = seen.row_entropy.defined();
  const bool removes = !buffers.keep.empty();
  if (map != seen.maps.end())
    sinks.raw_row = map->second.data_ptr<float>() + query * task.length;
  else if (removes && seen.diagonal.defined())
    sinks.raw_row = buffers.raw_row.data();
  const SoftmaxRow row =
      cpu_kernels().softmax_row(scores, task.length, scale, removes ? buffers.keep.data() : nullptr, sinks);
  if (seen.diagonal.defined())
    seen.diagonal.data_ptr<float>()[column + query] = removes ? sinks.raw_row[query] : scores[query];
  if (seen.diagonal_used.defined()) seen.diagonal_used.data_ptr<float>()[column + query] = scores[query];
  if (sinks.statistics) {
    const std::int64_t cell = (task.sequence * query_classes + query_class) * heads + task.head;
    seen.row_entropy.data_ptr<float>()[cell] += row.entropy;
    seen.row_max.data_ptr<float>()[cell] += row.row_max;
  }
  if (row.empty) {
#pragma omp atomic
    ++seen.empty_rows[static_cast<std::size_t>(task.sequence)];
  }
}

void prepare_keep(const HeadTask& task, std::int64_t tokens, const std::uint8_t* removed,
                  HeadBuffers& buffers) {
  buffers.keep.clear();
  if (removed == nullptr) return;
  const std::uint8_t* of_head = removed + task.head * tokens + task.first;
  if (std::none_of(of_head, of_head + task.length, [](std::uint8_t r) { return r != 0; })) return;
  buffers.keep.resize(static_cast<std::size_t>(task.length));
  std::transform(of_head, of_head + task.length, buffers.keep.begin(),
                 [](std::uint8_t r) { return r != 0 ? 0.0F : 1.0F; });
}

// Where keys are removed from the layer but none from this head, as used equals raw.
void copy_raw_to_used(const HeadTask& task, std::int64_t heads, std::int64_t tokens,
                      AttentionObservation& seen) {
  if (!seen.column_used.defined()) return;
  float* used = seen.column_used.data_ptr<float>() + task.head * tokens + task.first;
  for (std::int64_t c = 0; c < query_classes; ++c) {
    const float* raw = seen.column_sum.data_ptr<float>() + (c * heads + task.head) * tokens + task.first;
    for (std::int64_t j = 0; j < task.length; ++j) used[j] += raw[j];
  }
}

template <typename T>
void attend_head(const HeadTask& task, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                 const AttentionLayout& layout, const std::uint8_t* removed, at::Tensor& output,
                 AttentionObservation& seen) {
  thread_local HeadBuffers buffers;
  const std::int64_t heads = q.size(1);
  const std::int64_t width = q.size(2);
  const std::int64_t kv_head = task.head / (heads / k.size(1));
  const auto tokens = static_cast<std::int64_t>(layout.query_class.size());
  const float scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(width)));
  gather_head<T>(q, task.head, task, buffers.q);
  gather_head<T>(k, kv_head, task, buffers.k);
  gather_head<T>(v, kv_head, task, buffers.v);
  buffers.scores.resize(static_cast<std::size_t>(query_tile * task.length));
  buffers.raw_row.resize(static_cast<std::size_t>(task.length));
  buffers.out.resize(static_cast<std::size_t>(query_tile * width));
  prepare_keep(task, tokens, removed, buffers);
  for (std::int64_t begin = 0; begin < task.length; begin += query_tile) {
    const std::int64_t rows = std::min(query_tile, task.length - begin);
    multiply_floats(true, rows, task.length, width, buffers.q.data() + begin * width, buffers.k.data(),
                    buffers.scores.data());
    for (std::int64_t r = 0; r < rows; ++r)
      observe_row(task, begin + r, scale, buffers.scores.data() + r * task.length, buffers, layout, heads,
                  seen);
    multiply_floats(false, rows, width, task.length, buffers.scores.data(), buffers.v.data(),
                    buffers.out.data());
    for (std::int64_t r = 0; r < rows; ++r)
      storage_kernels<T>(cpu_kernels())
          .narrow(buffers.out.data() + r * width,
                  storage_of<T>(output) + ((task.first + begin + r) * heads + task.head) * width, width);
  }
  if (buffers.keep.empty()) copy_raw_to_used(task, heads, tokens, seen);
  if (buffers.keep.empty() && seen.diagonal_used.defined()) {
    const std::int64_t offset = task.head * tokens + task.first;
    std::copy_n(seen.diagonal.data_ptr<float>() + offset, task.length,
                seen.diagonal_used.data_ptr<float>() + offset);
  }
}

}  // namespace

AttentionResult attention_cpu(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                              const AttentionLayout& layout, const AttentionRequest& request) {
  const std::int64_t heads = q.size(1);
  AttentionResult result;
  result.output = at::empty({q.size(0), heads * q.size(2)}, q.options());
  AttentionObservation& seen = result.observation;
  seen = prepare_observation(heads, layout, request);
  const auto sequences = static_cast<std::int64_t>(layout.offsets.size()) - 1;
  with_storage(q.scalar_type(), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    parallel_for(sequences * heads, [&](std::int64_t i) {
      const std::int64_t b = i / heads;
      const HeadTask task{b, i % heads, layout.offsets[b], layout.offsets[b + 1] - layout.offsets[b]};
      if (task.length > 0) attend_head<T>(task, q, k, v, layout, request.removed, result.output, seen);
    });
  });
  finish_statistics(seen, layout);
  return result;
}

}  // namespace sinkscope
