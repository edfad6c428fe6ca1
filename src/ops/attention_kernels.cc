// Attention of one head in tiles of queries: scores of a tile against all keys, softmax and everything that
// is observed, product with the values. Compiled once per instruction set (cmake/rooms.cmake), each time into
// namespace SINKSCOPE_KERNEL_LEVEL. Sums are added in an order that follows from the shape alone.
//
// A tile keeps e^(s - max) as it is; what needs probabilities multiplies by 1 / sum: the column sums while
// they are added, the output rows at the end.
#include "ops/attention_kernels.h"

#include "ops/attention_packing.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

constexpr float infinity = __builtin_inff();

constexpr std::int64_t round_up(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }
constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// Queries per tile: as many as keep the tile's scores within the second-level cache, and enough to be worth
// reading all keys and values once more.
constexpr std::int64_t most_rows = 48;
constexpr std::int64_t fewest_rows = 24;
constexpr std::int64_t tile_bytes = 256 * 1024;
static_assert(most_rows % tile_rows == 0 && fewest_rows % tile_rows == 0);

// Keys per block of the product with the values: one panel of them stays in the first-level cache.
constexpr std::int64_t block_steps = 4096 / panel_columns;

// Sizes in elements that follow from S keys and D values.
struct Shape {
  std::int64_t keys, width;
  std::int64_t padded_keys;   // whole panels
  std::int64_t padded_width;  // whole panels
  std::int64_t key_steps, padded_key_steps;
  std::int64_t value_steps;
  std::int64_t score_stride;  // between the rows of a tile
  std::int64_t rows;          // queries per tile
};

template <typename Dot>
Shape shape_of(std::int64_t keys, std::int64_t width) {
  Shape shape{};
  shape.keys = keys;
  shape.width = width;
  shape.padded_keys = round_up(keys, panel_columns);
  shape.padded_width = round_up(width, panel_columns);
  shape.key_steps = Dot::steps(width);
  shape.padded_key_steps = round_up(shape.key_steps, 4);
  shape.value_steps = Dot::steps(keys);
  // One cache line more: rows a power of two apart would fall into the same few sets of the cache.
  shape.score_stride = shape.padded_keys + 16;
  const std::int64_t fitting = tile_bytes / (shape.score_stride * static_cast<std::int64_t>(sizeof(float)));
  shape.rows = fitting > most_rows     ? most_rows
               : fitting < fewest_rows ? fewest_rows
                                       : fitting / tile_rows * tile_rows;
  return shape;
}

// Room for one head, and for one tile of its queries.
template <typename Dot>
struct Workspace {
  using Element = typename Dot::Element;
  Element* keys;           // [panel][padded_key_steps][panel_columns]
  Element* values;         // [panel][value_steps][panel_columns]
  Element* row;            // for packing
  float* keep;             // [padded_keys] 1 or 0
  std::int64_t* removed;   // positions of the removed keys
  Element* queries;        // [rows, padded_key_steps]
  float* scores;           // [rows, score_stride]: scores, then e^(s - max)
  Element* probabilities;  // [rows, score_stride / 2] the same in pairs; unused with FloatDot
  float* maxima;           // [rows] vectors
  float* out;              // [rows, padded_width]
};

// Hands out aligned pieces of the caller's memory, or counts them where there is none.
struct Carver {
  char* memory;
  std::size_t used = 0;
  template <typename Element>
  Element* take(std::int64_t count) {
    Element* piece = memory == nullptr ? nullptr : reinterpret_cast<Element*>(memory + used);
    used += static_cast<std::size_t>(round_up(count * static_cast<std::int64_t>(sizeof(Element)), 64));
    return piece;
  }
};

template <typename Dot>
Workspace<Dot> carve(const Shape& shape, Carver& carver) {
  using Element = typename Dot::Element;
  constexpr bool pairs = Dot::steps(2) == 1;
  const std::int64_t longest_row =
      4 * shape.padded_key_steps > shape.padded_width ? 4 * shape.padded_key_steps : shape.padded_width;
  Workspace<Dot> work;
  work.keys = carver.take<Element>(shape.padded_keys * shape.padded_key_steps);
  work.values = carver.take<Element>(shape.padded_width * shape.value_steps);
  work.row = carver.take<Element>(longest_row);
  work.keep = carver.take<float>(shape.padded_keys);
  work.removed = carver.take<std::int64_t>(shape.keys);
  work.queries = carver.take<Element>(shape.rows * shape.padded_key_steps);
  work.scores = carver.take<float>(shape.rows * shape.score_stride);
  work.probabilities = carver.take<Element>(pairs ? shape.rows * shape.score_stride / 2 : 0);
  work.maxima = carver.take<float>(shape.rows * vector_lanes);
  work.out = carver.take<float>(shape.rows * shape.padded_width);
  return work;
}

// What a tile knows of its rows.
struct Tile {
  std::int64_t first;  // query
  std::int64_t rows;
  std::int64_t outputs = 0;            // rows whose output is wanted
  std::int64_t position[most_rows];    // in the sequence
  std::int64_t wanted[most_rows];      // [outputs] row of the tile
  std::int64_t output_row[most_rows];  // [outputs] row of the output
  float inverse_raw[most_rows];        // 1 / sum over all keys
  float inverse_used[most_rows];       // 1 / sum over the kept keys; 0 where there is none
};

// Everything that the steps below share.
template <typename Dot, typename T>
struct Work {
  const AttentionHead<T>& head;
  HeadObservation& seen;
  const Shape shape;
  Workspace<Dot> room;
  float factor;                    // scores to powers of two
  float last_bias[panel_columns];  // 0 for the keys of the last panel, -infinity behind them
  std::int64_t removed = 0;        // how many keys
  std::int64_t outputs_done = 0;   // how many rows of the output
};

template <typename Dot, typename T>
void prepare_head(Work<Dot, T>& work) {
  const AttentionHead<T>& head = work.head;
  const Shape& shape = work.shape;
  pack_keys<Dot>(head.k, head.key_stride, head.keys, head.width, shape.padded_key_steps, work.room.row,
                 work.room.keys);
  pack_values<Dot>(head.v, head.key_stride, head.keys, head.width, shape.padded_width, work.room.row,
                   work.room.values);
  work.factor = static_cast<float>(1.4426950408889634 / __builtin_sqrt(static_cast<double>(head.width)));
  const std::int64_t last = shape.padded_keys - panel_columns;
  for (std::int64_t i = 0; i < panel_columns; ++i)
    work.last_bias[i] = last + i < head.keys ? 0.0F : -infinity;
  if (head.removed == nullptr) return;
  for (std::int64_t j = 0; j < shape.padded_keys; ++j) {
    const bool gone = j < head.keys && head.removed[j] != 0;
    work.room.keep[j] = gone ? 0.0F : 1.0F;
    if (gone) work.room.removed[work.removed++] = j;
  }
}

template <typename Dot, typename T>
Tile begin_tile(Work<Dot, T>& work, std::int64_t first) {
  const AttentionHead<T>& head = work.head;
  Tile tile;
  tile.first = first;
  tile.rows = smaller(work.shape.rows, head.queries - first);
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const std::int64_t query = first + r;
    const std::int64_t token =
        head.query_tokens == nullptr ? head.first_token + query : head.query_tokens[query];
    tile.position[r] = token - head.first_token;
    const bool listed = work.outputs_done < head.outputs && head.output_tokens[work.outputs_done] == token;
    if (head.output_tokens == nullptr || listed) {
      tile.wanted[tile.outputs] = r;
      tile.output_row[tile.outputs++] = work.outputs_done++;
    }
    typename Dot::Element* row = work.room.queries + r * work.shape.padded_key_steps;
    convert_row(head.q + query * head.query_stride, head.width, row);
  }
  return tile;
}

// Scores of `rows` rows from row `first` against one panel of keys.
template <typename Dot, typename T, int rows>
inline void score_rows(Work<Dot, T>& work, std::int64_t first, std::int64_t panel) {
  const Shape& shape = work.shape;
  const typename Dot::Element* queries[rows];
  for (int r = 0; r < rows; ++r) queries[r] = work.room.queries + (first + r) * shape.padded_key_steps;
  const bool last = panel + panel_columns == shape.padded_keys;
  score_panel<Dot, rows>(queries, work.room.keys + panel * shape.padded_key_steps, shape.key_steps,
                         last ? work.last_bias : nullptr,
                         work.room.scores + first * shape.score_stride + panel, shape.score_stride,
                         work.room.maxima + first * vector_lanes);
}

template <typename Dot, typename T>
void score_tile(Work<Dot, T>& work, const Tile& tile) {
  for (std::int64_t r = 0; r < tile.rows; ++r)
    store_vector(work.room.maxima + r * vector_lanes, broadcast(-infinity));
  for (std::int64_t panel = 0; panel < work.shape.padded_keys; panel += panel_columns)
    for (std::int64_t r = 0; r < tile.rows; r += tile_rows)
      with_row_count(tile.rows - r,
                     [&](auto count) { score_rows<Dot, T, decltype(count)::value>(work, r, panel); });
}

struct RowSums {
  float all;       // sum of e
  float kept;      // of e over the kept keys
  float weighted;  // of e log2(e)
};

// scores [keys, a multiple of the lanes] become e = 2^(factor (s - max)), 0 for those far below.
template <bool with_kept, bool with_weighted>
RowSums exponentials(float* scores, std::int64_t keys, float max, float factor, const float* keep) {
  Vector all{}, kept{}, weighted{};
  for (std::int64_t j = 0; j < keys; j += vector_lanes) {
    const Vector t = larger(broadcast(lowest_power), (load_vector<Vector>(scores + j) - max) * factor);
    const Vector e = power_of_two(t);
    store_vector(scores + j, e);
    all += e;
    if constexpr (with_kept) kept += e * load_vector<Vector>(keep + j);
    if constexpr (with_weighted) weighted += e * t;
  }
  return {sum_lanes(all), sum_lanes(kept), sum_lanes(weighted)};
}

template <typename Dot, typename T>
RowSums exponentials_of_row(const Work<Dot, T>& work, std::int64_t r) {
  float* row = work.room.scores + r * work.shape.score_stride;
  const std::int64_t keys = work.shape.padded_keys;
  const float max = largest_lane(load_vector<Vector>(work.room.maxima + r * vector_lanes));
  if (work.removed > 0)
    return work.seen.statistics ? exponentials<true, true>(row, keys, max, work.factor, work.room.keep)
                                : exponentials<true, false>(row, keys, max, work.factor, work.room.keep);
  return work.seen.statistics ? exponentials<false, true>(row, keys, max, work.factor, nullptr)
                              : exponentials<false, false>(row, keys, max, work.factor, nullptr);
}

// columns [keys] += weight[r] row[r]
template <int rows>
void add_rows(const float* const* row, const float* weight, std::int64_t keys, float* columns) {
  std::int64_t j = 0;
  for (; j + vector_lanes <= keys; j += vector_lanes) {
    Vector sum = load_vector<Vector>(row[0] + j) * weight[0];
#pragma GCC unroll 16
    for (int r = 1; r < rows; ++r) sum += load_vector<Vector>(row[r] + j) * weight[r];
    store_vector(columns + j, load_vector<Vector>(columns + j) + sum);
  }
  for (; j < keys; ++j) {
    float sum = row[0][j] * weight[0];
    for (int r = 1; r < rows; ++r) sum += row[r][j] * weight[r];
    columns[j] += sum;
  }
}

// Adds those of `count` rows that belong(r) says to the columns, weighted; count <= tile_rows.
template <typename Dot, typename T, typename Belongs>
void add_columns(const Work<Dot, T>& work, std::int64_t first, std::int64_t count, const float* inverse,
                 float* columns, Belongs belongs) {
  const float* row[tile_rows];
  float weight[tile_rows];
  std::int64_t rows = 0;
  for (std::int64_t r = first; r < first + count; ++r)
    if (belongs(r)) {
      row[rows] = work.room.scores + r * work.shape.score_stride;
      weight[rows++] = inverse[r];
    }
  if (rows > 0)
    with_row_count(rows, [&](auto constant) {
      add_rows<decltype(constant)::value>(row, weight, work.head.keys, columns);
    });
}

template <typename Dot, typename T>
void observe_raw(const Work<Dot, T>& work, const Tile& tile, std::int64_t first, std::int64_t count) {
  const HeadObservation& seen = work.seen;
  for (std::int64_t c = 0; c < column_classes; ++c)
    if (seen.column_sum[c] != nullptr)
      add_columns(work, first, count, tile.inverse_raw, seen.column_sum[c],
                  [&](std::int64_t r) { return work.head.query_class[tile.position[r]] == c; });
  for (std::int64_t r = first; r < first + count; ++r) {
    const float* row = work.room.scores + r * work.shape.score_stride;
    const std::int64_t position = tile.position[r];
    if (seen.diagonal != nullptr) seen.diagonal[position] = row[position] * tile.inverse_raw[r];
    if (seen.map != nullptr)
      for (std::int64_t j = 0; j < work.head.keys; ++j)
        seen.map[(tile.first + r) * work.head.keys + j] = row[j] * tile.inverse_raw[r];
  }
}

// The exponentials of a row over the kept keys, from their own maximum: where that lies so far below the
// maximum over all keys that the exponentials taken from there vanish in float32. Returns 1 / sum.
template <typename Dot, typename T>
float retake_kept(Work<Dot, T>& work, std::int64_t r) {
  float* row = work.room.scores + r * work.shape.score_stride;
  for (std::int64_t panel = 0; panel < work.shape.padded_keys; panel += panel_columns)
    score_rows<Dot, T, 1>(work, r, panel);
  for (std::int64_t i = 0; i < work.removed; ++i) row[work.room.removed[i]] = -infinity;
  float max = -infinity;
  for (std::int64_t j = 0; j < work.head.keys; ++j) max = row[j] > max ? row[j] : max;
  if (work.removed < work.head.keys)
    return 1.0F / exponentials<false, false>(row, work.shape.padded_keys, max, work.factor, nullptr).all;
  for (std::int64_t j = 0; j < work.shape.padded_keys; ++j) row[j] = 0;
  ++work.seen.empty_rows;
  return 0;
}

// The two row maxima, over all keys and over the kept ones, may lie this far apart (nats). A row of S keys
// whose kept exponentials sum to more than S e^-60 cannot exceed it.
constexpr float exp_of_largest_gap = 8.75651076e-27F;  // e^-60

template <typename Dot, typename T>
void remove_keys(Work<Dot, T>& work, Tile& tile, std::int64_t r, float kept) {
  float* row = work.room.scores + r * work.shape.score_stride;
  if (kept <= exp_of_largest_gap * static_cast<float>(work.head.keys)) {
    tile.inverse_used[r] = retake_kept(work, r);
    return;
  }
  for (std::int64_t i = 0; i < work.removed; ++i) row[work.room.removed[i]] = 0;
  tile.inverse_used[r] = 1.0F / kept;
}

// Softmax of at most tile_rows rows, and all that is seen of them while they are in the first-level cache.
template <typename Dot, typename T>
void observe_rows(Work<Dot, T>& work, Tile& tile, std::int64_t first, std::int64_t count) {
  HeadObservation& seen = work.seen;
  float kept[tile_rows];
  for (std::int64_t r = first; r < first + count; ++r) {
    const RowSums sums = exponentials_of_row(work, r);
    tile.inverse_raw[r] = tile.inverse_used[r] = 1.0F / sums.all;
    kept[r - first] = sums.kept;
    if (seen.statistics) {
      constexpr float ln_2 = 0.693147181F;
      const std::int64_t c = work.head.query_class[tile.position[r]];
      seen.entropy[c] += static_cast<double>(__builtin_logf(sums.all) - ln_2 * sums.weighted / sums.all);
      seen.row_max[c] += static_cast<double>(tile.inverse_raw[r]);
    }
  }
  observe_raw(work, tile, first, count);
  if (work.removed == 0) return;
  for (std::int64_t r = first; r < first + count; ++r) {
    remove_keys(work, tile, r, kept[r - first]);
    const std::int64_t position = tile.position[r];
    if (seen.diagonal_used != nullptr)
      seen.diagonal_used[position] =
          work.room.scores[r * work.shape.score_stride + position] * tile.inverse_used[r];
  }
  if (seen.column_used != nullptr)
    add_columns(work, first, count, tile.inverse_used, seen.column_used, [](std::int64_t) { return true; });
}

// Where the product with the values finds row r of the tile. Pairs are rounded here, to nearest even; e is
// neither negative nor infinite.
inline const float* product_row(const Work<FloatDot, float>& work, std::int64_t r) {
  return work.room.scores + r * work.shape.score_stride;
}
inline const float* product_row(const Work<FloatDot, Bfloat16>& work, std::int64_t r) {
  return work.room.scores + r * work.shape.score_stride;
}
inline const std::uint32_t* product_row(const Work<PairDot, Bfloat16>& work, std::int64_t r) {
  return work.room.probabilities + r * work.shape.score_stride / 2;
}

inline void round_rows(const Work<FloatDot, float>&, const Tile&) {}
inline void round_rows(const Work<FloatDot, Bfloat16>&, const Tile&) {}
inline void round_rows(const Work<PairDot, Bfloat16>& work, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.outputs; ++i) {
    const float* from = work.room.scores + tile.wanted[i] * work.shape.score_stride;
    std::uint32_t* to = work.room.probabilities + tile.wanted[i] * work.shape.score_stride / 2;
    for (std::int64_t j = 0; j < work.shape.padded_keys; j += 2) {
      Bfloat16 low, high;
      store(&low, from[j]);
      store(&high, from[j + 1]);
      to[j / 2] = pair(low, high);
    }
  }
}

template <typename Dot, typename T>
void weigh_tile(const Work<Dot, T>& work, const Tile& tile) {
  const Shape& shape = work.shape;
  round_rows(work, tile);
  for (std::int64_t block = 0; block < shape.value_steps; block += block_steps)
    for (std::int64_t column = 0; column < shape.padded_width; column += panel_columns)
      for (std::int64_t i = 0; i < tile.outputs; i += tile_rows)
        with_row_count(tile.outputs - i, [&](auto count) {
          constexpr int rows = decltype(count)::value;
          const typename Dot::Element* row[rows];
          for (int r = 0; r < rows; ++r) row[r] = product_row(work, tile.wanted[i + r]) + block;
          weigh_panel<Dot, rows>(row, work.room.values + column * shape.value_steps + block * panel_columns,
                                 smaller(block_steps, shape.value_steps - block), block == 0,
                                 work.room.out + i * shape.padded_width + column, shape.padded_width);
        });
}

template <typename Dot, typename T>
void write_tile(const Work<Dot, T>& work, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.outputs; ++i) {
    const float* from = work.room.out + i * work.shape.padded_width;
    const float inverse = tile.inverse_used[tile.wanted[i]];
    T* to = work.head.output + tile.output_row[i] * work.head.output_stride;
    for (std::int64_t d = 0; d < work.shape.width; ++d) store(to + d, from[d] * inverse);
  }
}

template <typename Dot, typename T>
void attend(const AttentionHead<T>& head, HeadObservation& seen, void* workspace) {
  const Shape shape = shape_of<Dot>(head.keys, head.width);
  Carver carver{static_cast<char*>(workspace)};
  Work<Dot, T> work{head, seen, shape, carve<Dot>(shape, carver), 0, {}};
  prepare_head(work);
  for (std::int64_t first = 0; first < head.queries; first += shape.rows) {
    Tile tile = begin_tile(work, first);
    score_tile(work, tile);
    for (std::int64_t r = 0; r < tile.rows; r += tile_rows)
      observe_rows(work, tile, r, smaller(tile_rows, tile.rows - r));
    weigh_tile(work, tile);
    write_tile(work, tile);
  }
}

template <typename Dot>
std::size_t workspace_bytes(std::int64_t keys, std::int64_t width) {
  Carver counter{nullptr};
  carve<Dot>(shape_of<Dot>(keys, width), counter);
  return counter.used;
}

template <typename Dot, typename T>
constexpr AttentionKernels<T> table() {
  return {workspace_bytes<Dot>, attend<Dot, T>};
}

#ifdef __AVX512BF16__
using Bfloat16Dot = PairDot;
#else
using Bfloat16Dot = FloatDot;
#endif

}  // namespace

AttentionKernels<float> attention_of_floats() { return table<FloatDot, float>(); }
AttentionKernels<Bfloat16> attention_of_bfloat16() { return table<Bfloat16Dot, Bfloat16>(); }
AttentionKernels<Bfloat16> attention_of_bfloat16_pairs() { return table<PairDot, Bfloat16>(); }

}  // namespace sinkscope::SINKSCOPE_KERNEL_LEVEL
