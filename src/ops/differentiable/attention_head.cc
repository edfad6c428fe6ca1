#include "ops/differentiable/attention_head.h"

#include <cmath>
#include <vector>

#include "ops/aligned_buffer.h"
#include "ops/bfloat16.h"
#include "ops/differentiable/matrix_product.h"
#include "ops/differentiable/training_kernels.h"

namespace sinkscope {
namespace {

// Forward, a tile holds all scores of its queries: 128 K of them in float32 and once more as factors leave
// room for keys and values in a megabyte of second-level cache. Backward, a tile is a square of scores.
constexpr std::int64_t most_scores = std::int64_t{1} << 17;
constexpr std::int64_t most_queries = 128, fewest_queries = 32;

// A square of 256 costs fewer calls, one of 128 skips more of what a causal mask hides.
std::int64_t square_of(const AttentionMask& mask) { return mask.causal ? 128 : 256; }

std::int64_t queries_of_a_tile(std::int64_t positions) {
  return std::clamp(most_scores / positions / 16 * 16, fewest_queries, most_queries);
}

// What a thread works in.
struct Workspace {
  AlignedBuffer scores, score_gradients, probabilities, factors_of_gradients, output_gradient;
};
Workspace& thread_workspace() {
  thread_local Workspace workspace;
  return workspace;
}

template <typename T>
T* matrix(AlignedBuffer& buffer, std::int64_t rows, std::int64_t columns) {
  return buffer.get<T>(static_cast<std::size_t>(rows * columns));
}

template <typename T>
void zero(T* row, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) row[i] = {};
}

struct RowSum {
  float sum, log_sum;
};

// One row of scores, keys [begin, end), into e^(scale (s - max)), 0 where a key is not seen. `seen` counts
// from the first key of the row.
template <typename T>
RowSum softmax_row(const SeenKeys& seen, std::int64_t keys, float scale, const float* scores, T* row) {
  const TrainingKernels& kernels = training_kernels();
  const std::int64_t count = seen.end - seen.begin;
  const float max =
      std::max(kernels.maximum(scores, seen.prefix), kernels.maximum(scores + seen.begin, count));
  const auto exponentials = factor_kernels<T>(kernels).exponentials;
  float sum = exponentials(scores + seen.begin, max, scale, row + seen.begin, count);
  if (seen.prefix > 0) sum += exponentials(scores, max, scale, row, seen.prefix);
  zero(row, seen.prefix, seen.begin);
  zero(row, seen.end, keys);
  return {sum, scale * max + std::log(sum)};
}

struct Span {
  std::int64_t begin, end;
  std::int64_t count() const { return end - begin; }
};

// The keys that some query of the tile sees, as one range.
Span keys_of(const HeadShape& shape, Span queries) {
  const SeenKeys first = seen_keys(shape.mask, queries.begin, shape.positions);
  return {first.prefix > 0 || shape.mask.prefix > 0 ? 0 : first.begin,
          seen_keys(shape.mask, queries.end - 1, shape.positions).end};
}

bool sees(const HeadShape& shape, Span queries, Span keys) {
  const SeenKeys first = seen_keys(shape.mask, queries.begin, shape.positions);
  const SeenKeys last = seen_keys(shape.mask, queries.end - 1, shape.positions);
  return keys.begin < last.end && (keys.end > first.begin || keys.begin < last.prefix);
}

template <typename T>
void attend_tile(const HeadShape& shape, const HeadFactors<T>& factors, Span queries, HeadRows<float> output,
                 float* log_sum) {
  Workspace& workspace = thread_workspace();
  const Span keys = keys_of(shape, queries);
  auto* scores = matrix<float>(workspace.scores, queries.count(), keys.count());
  auto* probabilities = matrix<T>(workspace.probabilities, queries.count(), keys.count());
  const std::int64_t width = shape.width;
  multiply_matrices({queries.count(), keys.count(), width},
                    Factor<T>{factors.q + queries.begin * width, width},
                    transposed(factors.k + keys.begin * width, width), scores, keys.count());
  float inverse[most_queries];
  for (std::int64_t i = 0; i < queries.count(); ++i) {
    SeenKeys seen = seen_keys(shape.mask, queries.begin + i, shape.positions);
    seen.begin -= keys.begin;
    seen.end -= keys.begin;
    const RowSum row = softmax_row(seen, keys.count(), shape.scale, scores + i * keys.count(),
                                   probabilities + i * keys.count());
    inverse[i] = 1.0F / row.sum;
    log_sum[queries.begin + i] = row.log_sum;
  }
  multiply_matrices({queries.count(), width, keys.count()}, Factor<T>{probabilities, keys.count()},
                    Factor<T>{factors.v + keys.begin * width, width}, output.row(queries.begin),
                    output.stride);
  for (std::int64_t i = 0; i < queries.count(); ++i) {
    float* row = output.row(queries.begin + i);
    training_kernels().f32.scale(row, inverse[i], row, width);
  }
}

// The part of `keys` in [begin, end), counted from the first of them; empty where there is none.
Span part_of(Span keys, std::int64_t begin, std::int64_t end) {
  const std::int64_t first = std::clamp(begin, keys.begin, keys.end);
  return {first - keys.begin, std::max(first, std::min(end, keys.end)) - keys.begin};
}

// What the backward pass of one head reads.
template <typename T>
struct HeadBackward {
  const HeadShape& shape;
  const HeadFactors<T>& factors;
  const T* output_gradient;  // [positions, width]
  const float* log_sum;
  const float* delta;  // rowsum(dO O), [positions]
};

template <typename T>
struct TileFactors {
  T* probabilities;
  T* score_gradients;  // both [queries, keys]
};

// P and dS of a square of scores.
template <typename T>
TileFactors<T> tile_factors(const HeadBackward<T>& head, Span queries, Span keys) {
  Workspace& workspace = thread_workspace();
  const std::int64_t width = head.shape.width, columns = keys.count();
  auto* scores = matrix<float>(workspace.scores, queries.count(), columns);
  auto* gradients = matrix<float>(workspace.score_gradients, queries.count(), columns);
  const ProductSize size{queries.count(), columns, width};
  multiply_matrices(size, Factor<T>{head.factors.q + queries.begin * width, width},
                    transposed(head.factors.k + keys.begin * width, width), scores, columns);
  multiply_matrices(size, Factor<T>{head.output_gradient + queries.begin * width, width},
                    transposed(head.factors.v + keys.begin * width, width), gradients, columns);
  const TileFactors<T> made{matrix<T>(workspace.probabilities, queries.count(), columns),
                            matrix<T>(workspace.factors_of_gradients, queries.count(), columns)};
  for (std::int64_t i = 0; i < queries.count(); ++i) {
    const std::int64_t query = queries.begin + i, row = i * columns;
    const SeenKeys seen = seen_keys(head.shape.mask, query, head.shape.positions);
    const Span prefix = part_of(keys, 0, seen.prefix), rest = part_of(keys, seen.begin, seen.end);
    for (const Span part : {prefix, rest})
      if (part.count() > 0)
        factor_kernels<T>(training_kernels())
            .attention_gradient(scores + row + part.begin, gradients + row + part.begin, head.shape.scale,
                                head.log_sum[query], head.delta[query], made.probabilities + row + part.begin,
                                made.score_gradients + row + part.begin, part.count());
    for (T* factor : {made.probabilities + row, made.score_gradients + row}) {
      zero(factor, prefix.end, rest.begin);
      zero(factor, rest.end, columns);
    }
  }
  return made;
}

// The square's share of all gradients; `first_of_*` says that nothing has been added there yet.
template <typename T>
void add_tile(const HeadBackward<T>& head, Span queries, Span keys, const HeadGradients& gradients,
              bool first_of_keys, bool first_of_queries) {
  const TileFactors<T> tile = tile_factors(head, queries, keys);
  const std::int64_t width = head.shape.width, columns = keys.count();
  const ProductSize of_keys{columns, width, queries.count()};
  multiply_matrices(of_keys, transposed<T>(tile.probabilities, columns),
                    Factor<T>{head.output_gradient + queries.begin * width, width},
                    gradients.v.row(keys.begin), gradients.v.stride, !first_of_keys);
  multiply_matrices(of_keys, transposed<T>(tile.score_gradients, columns),
                    Factor<T>{head.factors.q + queries.begin * width, width}, gradients.k.row(keys.begin),
                    gradients.k.stride, !first_of_keys);
  multiply_matrices({queries.count(), width, columns}, Factor<T>{tile.score_gradients, columns},
                    Factor<T>{head.factors.k + keys.begin * width, width}, gradients.q.row(queries.begin),
                    gradients.q.stride, !first_of_queries);
}

}  // namespace

template <typename T>
void attend(const HeadShape& shape, const HeadFactors<T>& factors, HeadRows<float> output, float* log_sum) {
  const std::int64_t step = queries_of_a_tile(shape.positions);
  for (std::int64_t begin = 0; begin < shape.positions; begin += step)
    attend_tile(shape, factors, {begin, std::min(begin + step, shape.positions)}, output, log_sum);
}

template <typename T>
void attend_backward(const HeadShape& shape, const HeadFactors<T>& factors, HeadRows<const float> output,
                     const float* log_sum, HeadRows<const float> output_gradient,
                     const HeadGradients& gradients) {
  const TrainingKernels& kernels = training_kernels();
  auto* rounded = matrix<T>(thread_workspace().output_gradient, shape.positions, shape.width);
  std::vector<float> delta(static_cast<std::size_t>(shape.positions));
  for (std::int64_t i = 0; i < shape.positions; ++i) {
    delta[i] = kernels.dot(output.row(i), output_gradient.row(i), shape.width);
    factor_kernels<T>(kernels).convert(output_gradient.row(i), rounded + i * shape.width, shape.width);
  }
  const HeadBackward<T> head{shape, factors, rounded, log_sum, delta.data()};
  const std::int64_t square = square_of(shape.mask);
  std::vector<bool> begun(static_cast<std::size_t>((shape.positions + square - 1) / square), false);
  for (std::int64_t key = 0; key < shape.positions; key += square) {
    const Span keys{key, std::min(key + square, shape.positions)};
    bool first_of_keys = !gradients.add_to_keys;
    for (std::int64_t query = 0; query < shape.positions; query += square) {
      const Span queries{query, std::min(query + square, shape.positions)};
      if (!sees(shape, queries, keys)) continue;
      add_tile(head, queries, keys, gradients, first_of_keys, !begun[query / square]);
      first_of_keys = false;
      begun[query / square] = true;
    }
  }
}

template void attend<float>(const HeadShape&, const HeadFactors<float>&, HeadRows<float>, float*);
template void attend<Bfloat16>(const HeadShape&, const HeadFactors<Bfloat16>&, HeadRows<float>, float*);
template void attend_backward<float>(const HeadShape&, const HeadFactors<float>&, HeadRows<const float>,
                                     const float*, HeadRows<const float>, const HeadGradients&);
template void attend_backward<Bfloat16>(const HeadShape&, const HeadFactors<Bfloat16>&, HeadRows<const float>,
                                        const float*, HeadRows<const float>, const HeadGradients&);

}  // namespace sinkscope
