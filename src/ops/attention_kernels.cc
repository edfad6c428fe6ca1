// Attention of one head in tiles of queries: scores of a tile against all keys, softmax and everything that
// is observed, product with the values. Compiled once per instruction set (cmake/rooms.cmake), each time into
// namespace SINKSCOPE_KERNEL_LEVEL. Sums are added in an order that follows from the shape alone.
//
// A tile keeps e^(s - max) as it is; what needs probabilities multiplies by 1 / sum: the column sums while
// they are added, the output rows at the end.
#include "ops/attention_kernels.h"

#include "ops/attention_packing.h"
#include "ops/attention_softmax.h"
#include "ops/attention_workspace.h"

namespace sinkscope::SINKSCOPE_KERNEL_LEVEL {
namespace {

constexpr float infinity = __builtin_inff();

// What a tile knows of its rows.
struct Tile {
  std::int64_t first;  // query
  std::int64_t rows;
  std::int64_t outputs = 0;            // rows whose output is wanted
  std::int64_t begin_key, end_key;     // whole panels: all keys that any row sees lie between
  std::int64_t position[most_rows];    // among the keys
  std::int64_t wanted[most_rows];      // [outputs] row of the tile
  std::int64_t output_row[most_rows];  // [outputs] row of the output
  float inverse_raw[most_rows];        // 1 / sum over all keys
  float inverse_used[most_rows];       // 1 / sum over the kept keys; 0 where there is none
  float changed_share[most_rows];      // attention to the changed keys, of KeyAction::value_mean
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
  std::int64_t removed_keys = 0;
  std::int64_t outputs_done = 0;

  std::int64_t first_visible(std::int64_t position) const {
    return head.window > 0 && position >= head.window ? position - head.window + 1 : 0;
  }
  // Behind the last key of the tile that is a key and no padding.
  std::int64_t key_count(const Tile& tile) const { return smaller(tile.end_key, head.keys) - tile.begin_key; }
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
    if (gone) work.room.removed[work.removed_keys++] = static_cast<std::int32_t>(j);
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
    tile.position[r] = token - head.first_token + head.first_position;
    const bool all = head.outputs == head.queries;
    if (all || (work.outputs_done < head.outputs && head.output_tokens[work.outputs_done] == token)) {
      tile.wanted[tile.outputs] = r;
      tile.output_row[tile.outputs++] = work.outputs_done++;
    }
    typename Dot::Element* row = work.room.queries + r * work.shape.padded_key_steps;
    convert_row(head.q + query * head.query_stride, head.width, row);
  }
  tile.begin_key = 0;
  tile.end_key = work.shape.padded_keys;
  if (head.causal) {
    tile.begin_key = work.first_visible(tile.position[0]) / panel_columns * panel_columns;
    tile.end_key = round_up(tile.position[tile.rows - 1] + 1, panel_columns);
  }
  return tile;
}

// -infinity for the keys of a panel that a causal row does not see, 0 for the others; null where all rows see
// all of them.
template <typename Dot, typename T, int rows>
inline const float* causal_bias(const Work<Dot, T>& work, const Tile& tile, std::int64_t first,
                                std::int64_t panel, float* bias) {
  const bool all_seen = panel + panel_columns <= tile.position[first] + 1 &&
                        panel >= work.first_visible(tile.position[first + rows - 1]);
  if (all_seen) return nullptr;
  for (int r = 0; r < rows; ++r) {
    const std::int64_t position = tile.position[first + r];
    for (std::int64_t i = 0; i < panel_columns; ++i) {
      const bool seen = panel + i <= position && panel + i >= work.first_visible(position);
      bias[r * panel_columns + i] = seen ? 0.0F : -infinity;
    }
  }
  return bias;
}

// Scores of `rows` rows from row `first` against one panel of keys.
template <typename Dot, typename T, int rows>
inline void score_rows(Work<Dot, T>& work, const Tile& tile, std::int64_t first, std::int64_t panel) {
  const Shape& shape = work.shape;
  const typename Dot::Element* queries[rows];
  for (int r = 0; r < rows; ++r) queries[r] = work.room.queries + (first + r) * shape.padded_key_steps;
  float causal[rows * panel_columns];
  const float* bias = nullptr;
  if (work.head.causal)
    bias = causal_bias<Dot, T, rows>(work, tile, first, panel, causal);
  else if (panel + panel_columns == shape.padded_keys)
    bias = work.last_bias;
  score_panel<Dot, rows>(queries, work.room.keys + panel * shape.padded_key_steps, shape.key_steps, bias,
                         work.head.causal ? panel_columns : 0,
                         work.room.scores + first * shape.score_stride + panel, shape.score_stride,
                         work.room.maxima + first * vector_lanes);
}

template <typename Dot, typename T>
void score_tile(Work<Dot, T>& work, const Tile& tile) {
  for (std::int64_t r = 0; r < tile.rows; ++r)
    store_vector(work.room.maxima + r * vector_lanes, broadcast(-infinity));
  for (std::int64_t panel = tile.begin_key; panel < tile.end_key; panel += panel_columns)
    for (std::int64_t r = 0; r < tile.rows; r += register_rows)
      with_row_count(tile.rows - r,
                     [&](auto count) { score_rows<Dot, T, decltype(count)::value>(work, tile, r, panel); });
}

template <typename Dot, typename T>
RowSums exponentials_of_row(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  float* row = work.room.scores + r * work.shape.score_stride + tile.begin_key;
  const std::int64_t keys = tile.end_key - tile.begin_key;
  const float* keep = work.room.keep + tile.begin_key;
  const float max = largest_lane(load_vector<Vector>(work.room.maxima + r * vector_lanes));
  if (work.removed_keys > 0)
    return work.seen.statistics ? exponentials<true, true>(row, keys, max, work.factor, keep)
                                : exponentials<true, false>(row, keys, max, work.factor, keep);
  return work.seen.statistics ? exponentials<false, true>(row, keys, max, work.factor, nullptr)
                              : exponentials<false, false>(row, keys, max, work.factor, nullptr);
}

// Adds those of `count` rows that belong(r) says to the columns, weighted; count <= register_rows.
template <typename Dot, typename T, typename Belongs>
void add_columns(const Work<Dot, T>& work, const Tile& tile, std::int64_t first, std::int64_t count,
                 const float* inverse, float* columns, Belongs belongs) {
  const float* row[register_rows];
  float weight[register_rows];
  std::int64_t rows = 0;
  for (std::int64_t r = first; r < first + count; ++r)
    if (belongs(r)) {
      row[rows] = work.room.scores + r * work.shape.score_stride + tile.begin_key;
      weight[rows++] = inverse[r];
    }
  if (rows > 0)
    with_row_count(rows, [&](auto constant) {
      add_rows<decltype(constant)::value>(row, weight, work.key_count(tile), columns + tile.begin_key);
    });
}

template <typename Dot, typename T>
std::int64_t token_of(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  return tile.position[r] - work.head.first_position;
}

template <typename Dot, typename T>
std::int64_t class_of(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  return work.head.query_class[token_of(work, tile, r)];
}

template <typename Dot, typename T>
void observe_raw(const Work<Dot, T>& work, const Tile& tile, std::int64_t first, std::int64_t count) {
  const HeadObservation& seen = work.seen;
  for (std::int64_t c = 0; c < column_classes; ++c)
    if (seen.column_sum[c] != nullptr)
      add_columns(work, tile, first, count, tile.inverse_raw, seen.column_sum[c],
                  [&](std::int64_t r) { return class_of(work, tile, r) == c; });
  for (std::int64_t r = first; r < first + count; ++r) {
    const float* row = work.room.scores + r * work.shape.score_stride;
    const std::int64_t position = tile.position[r];
    if (seen.diagonal != nullptr) seen.diagonal[position] = row[position] * tile.inverse_raw[r];
    if (seen.map != nullptr)
      for (std::int64_t j = 0; j < work.head.keys; ++j) {
        const bool scored = j >= tile.begin_key && j < tile.end_key;
        seen.map[(tile.first + r) * work.head.keys + j] = scored ? row[j] * tile.inverse_raw[r] : 0.0F;
      }
  }
}

// The keys that are changed for row r.
struct ChangedKeys {
  const std::int32_t* keys;
  std::int64_t count;
};
template <typename Dot, typename T>
ChangedKeys changed_keys(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  const AttentionHead<T>& head = work.head;
  if (head.row_removed == nullptr) return {work.room.removed, work.removed_keys};
  const std::int32_t* keys = head.row_removed + token_of(work, tile, r) * head.row_room;
  std::int64_t count = 0;
  while (count < head.row_room && keys[count] >= 0) ++count;
  return {keys, count};
}

template <typename Dot, typename T>
bool changes_keys(const Work<Dot, T>& work) {
  return work.removed_keys > 0 || work.head.row_removed != nullptr;
}

// change(value) for the score or exponential of every changed key that is in the tile.
template <typename Dot, typename T, typename Change>
void change_keys(const Work<Dot, T>& work, const Tile& tile, std::int64_t r, Change change) {
  float* row = work.room.scores + r * work.shape.score_stride;
  const ChangedKeys changed = changed_keys(work, tile, r);
  for (std::int64_t i = 0; i < changed.count; ++i) {
    const std::int64_t key = changed.keys[i];
    if (key >= tile.begin_key && key < tile.end_key) change(row[key]);
  }
}

template <typename Dot, typename T>
void set_removed(const Work<Dot, T>& work, const Tile& tile, std::int64_t r, float value) {
  change_keys(work, tile, r, [value](float& cell) { cell = value; });
}

// The exponentials of a row over the kept keys, from their own maximum: where that lies so far below the
// maximum over all keys that the exponentials taken from there vanish in float32. Returns 1 / sum.
template <typename Dot, typename T>
float retake_kept(Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  for (std::int64_t panel = tile.begin_key; panel < tile.end_key; panel += panel_columns)
    score_rows<Dot, T, 1>(work, tile, r, panel);
  set_removed(work, tile, r, -infinity);
  float* row = work.room.scores + r * work.shape.score_stride + tile.begin_key;
  float max = -infinity;
  for (std::int64_t j = 0; j < work.key_count(tile); ++j) max = row[j] > max ? row[j] : max;
  const std::int64_t keys = tile.end_key - tile.begin_key;
  if (max > -infinity) return 1.0F / exponentials<false, false>(row, keys, max, work.factor, nullptr).all;
  for (std::int64_t j = 0; j < keys; ++j) row[j] = 0;
  ++work.seen.empty_rows;
  return 0;
}

// The two row maxima, over all keys and over the kept ones, may lie this far apart (nats). A row of S keys
// whose kept exponentials sum to more than S e^-60 cannot exceed it.
constexpr float exp_of_largest_gap = 8.75651076e-27F;  // e^-60

template <typename Dot, typename T>
void remove_keys(Work<Dot, T>& work, Tile& tile, std::int64_t r, float kept) {
  if (kept <= exp_of_largest_gap * static_cast<float>(work.head.keys)) {
    tile.inverse_used[r] = retake_kept(work, tile, r);
    return;
  }
  set_removed(work, tile, r, 0);
  tile.inverse_used[r] = 1.0F / kept;
}

// The exponentials of the changed keys times eta.
template <typename Dot, typename T>
void scale_keys(Work<Dot, T>& work, Tile& tile, std::int64_t r, float kept) {
  float changed = 0;
  const float eta = work.head.eta;
  change_keys(work, tile, r, [&](float& cell) { changed += cell *= eta; });
  tile.inverse_used[r] = 1.0F / (kept + changed);
}

// The row as the product with the values takes it where the changed keys have other values: without them.
template <typename Dot, typename T>
void leave_to_values(Work<Dot, T>& work, Tile& tile, std::int64_t r) {
  float changed = 0;
  change_keys(work, tile, r, [&](float& cell) {
    changed += cell;
    cell = 0;
  });
  tile.changed_share[r] = changed * tile.inverse_raw[r];
}

template <typename Dot, typename T>
bool changes_values(const Work<Dot, T>& work) {
  return work.head.action == KeyAction::value_zero || work.head.action == KeyAction::value_mean;
}

template <typename Dot, typename T>
float sum_of_row(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  return sum_row(work.room.scores + r * work.shape.score_stride + tile.begin_key,
                 tile.end_key - tile.begin_key);
}

// Row r after the action. `kept` is the sum over the kept keys where they are the same for all rows; of
// single rows' keys it is taken of what is left, since the difference of two sums would lose small ones.
template <typename Dot, typename T>
void change_row(Work<Dot, T>& work, Tile& tile, std::int64_t r, float kept) {
  const bool own = work.head.row_removed != nullptr;
  if (own && changed_keys(work, tile, r).count == 0) return;
  if (work.head.action == KeyAction::remove) {
    if (own) {
      set_removed(work, tile, r, 0);
      kept = sum_of_row(work, tile, r);
    }
    remove_keys(work, tile, r, kept);
  } else if (work.head.action == KeyAction::scale) {
    if (own) {
      change_keys(work, tile, r, [&](float& cell) { cell *= work.head.eta; });
      tile.inverse_used[r] = 1.0F / sum_of_row(work, tile, r);
    } else {
      scale_keys(work, tile, r, kept);
    }
  }
}

template <typename Dot, typename T>
void write_changed_share(const Work<Dot, T>& work, const Tile& tile, std::int64_t r) {
  float changed = 0;
  change_keys(work, tile, r, [&](const float& cell) { changed += cell; });
  work.seen.changed_share[token_of(work, tile, r)] = changed * tile.inverse_raw[r];
}

// Lists of row r's keys, and the row where it is the last one; of the row as it is now.
template <typename Dot, typename T>
void list_keys(const Work<Dot, T>& work, const Tile& tile, std::int64_t r, float inverse) {
  const AttentionHead<T>& head = work.head;
  const float* row = work.room.scores + r * work.shape.score_stride;
  const std::int64_t own = tile.position[r], token = token_of(work, tile, r);
  const auto may = [&](std::int64_t key) {
    return (!head.without_self || key != own) && (head.listed == nullptr || head.listed[key] != 0);
  };
  if (work.seen.most != nullptr) {
    const double sum = inverse > 0 ? 1.0 / static_cast<double>(inverse) : 0;
    const double competing = head.without_self ? sum - static_cast<double>(row[own]) : sum;
    const double bound = head.slope * competing + head.offset * (head.offset < 0 ? 1 : sum);
    list_largest(row, head.keys, static_cast<float>(bound),
                 {work.seen.most + token * head.most, work.room.ranked, head.most},
                 head.listed != nullptr ? head.keys : (head.without_self ? 1 : 0), may);
  }
  if (work.seen.least != nullptr)
    list_smallest(row, head.keys, {work.seen.least + token * head.least, work.room.ranked, head.least}, may);
  if (work.seen.last_row == nullptr || own != head.keys - 1) return;
  for (std::int64_t j = 0; j < head.keys; ++j)
    work.seen.last_row[j] = j >= tile.begin_key && j < tile.end_key ? row[j] * inverse : 0.0F;
}

template <typename Dot, typename T>
void list_rows(const Work<Dot, T>& work, const Tile& tile, std::int64_t first, std::int64_t count,
               const float* inverse) {
  const HeadObservation& seen = work.seen;
  if (seen.most == nullptr && seen.least == nullptr && seen.last_row == nullptr) return;
  for (std::int64_t r = first; r < first + count; ++r) list_keys(work, tile, r, inverse[r]);
}

// Softmax of at most register_rows rows, and all that is seen of them while they are in the first-level
// cache.
template <typename Dot, typename T>
void observe_rows(Work<Dot, T>& work, Tile& tile, std::int64_t first, std::int64_t count) {
  HeadObservation& seen = work.seen;
  float kept[register_rows];
  for (std::int64_t r = first; r < first + count; ++r) {
    const RowSums sums = exponentials_of_row(work, tile, r);
    tile.inverse_raw[r] = tile.inverse_used[r] = 1.0F / sums.all;
    kept[r - first] = sums.kept;
    if (seen.statistics) {
      constexpr float ln_2 = 0.693147181F;
      const std::int64_t c = class_of(work, tile, r);
      seen.entropy[c] += static_cast<double>(__builtin_logf(sums.all) - ln_2 * sums.weighted / sums.all);
      seen.row_max[c] += static_cast<double>(tile.inverse_raw[r]);
    }
  }
  observe_raw(work, tile, first, count);
  const bool changes = changes_keys(work);
  if (!changes || !work.head.as_used) list_rows(work, tile, first, count, tile.inverse_raw);
  if (!changes) return;
  for (std::int64_t r = first; r < first + count; ++r) {
    if (seen.changed_share != nullptr) write_changed_share(work, tile, r);
    change_row(work, tile, r, kept[r - first]);
    const std::int64_t position = tile.position[r];
    if (seen.diagonal_used != nullptr)
      seen.diagonal_used[position] =
          work.room.scores[r * work.shape.score_stride + position] * tile.inverse_used[r];
  }
  if (work.head.as_used) list_rows(work, tile, first, count, tile.inverse_used);
  if (seen.column_used != nullptr)
    add_columns(work, tile, first, count, tile.inverse_used, seen.column_used,
                [](std::int64_t) { return true; });
  if (changes_values(work))
    for (std::int64_t r = first; r < first + count; ++r) leave_to_values(work, tile, r);
}

// Row r of the tile as the product with the values reads it.
template <typename Dot, typename T>
inline const typename Dot::Element* product_row(const Work<Dot, T>& work, std::int64_t r) {
  if constexpr (Dot::pairs)
    return work.room.probabilities + r * work.shape.score_stride / 2;
  else
    return work.room.scores + r * work.shape.score_stride;
}

template <typename Dot, typename T>
void weigh_tile(const Work<Dot, T>& work, const Tile& tile) {
  const Shape& shape = work.shape;
  if constexpr (Dot::pairs)
    for (std::int64_t i = 0; i < tile.outputs; ++i)
      round_row(work.room.scores + tile.wanted[i] * shape.score_stride + tile.begin_key,
                tile.end_key - tile.begin_key,
                work.room.probabilities + (tile.wanted[i] * shape.score_stride + tile.begin_key) / 2);
  constexpr std::int64_t keys_a_step = Dot::pairs ? 2 : 1;
  const std::int64_t begin = tile.begin_key / keys_a_step;
  const std::int64_t end = smaller(tile.end_key / keys_a_step, shape.value_steps);
  for (std::int64_t block = begin; block < end; block += block_steps)
    for (std::int64_t column = 0; column < shape.padded_width; column += panel_columns)
      for (std::int64_t i = 0; i < tile.outputs; i += register_rows)
        with_row_count(tile.outputs - i, [&](auto count) {
          constexpr int rows = decltype(count)::value;
          const typename Dot::Element* row[rows];
          for (int r = 0; r < rows; ++r) row[r] = product_row(work, tile.wanted[i + r]) + block;
          weigh_panel<Dot, rows>(row, work.room.values + column * shape.value_steps + block * panel_columns,
                                 smaller(block_steps, end - block), block == begin,
                                 work.room.out + i * shape.padded_width + column, shape.padded_width);
        });
}

template <typename Dot, typename T>
void write_tile(const Work<Dot, T>& work, const Tile& tile) {
  for (std::int64_t i = 0; i < tile.outputs; ++i) {
    const float* from = work.room.out + i * work.shape.padded_width;
    const float inverse = tile.inverse_used[tile.wanted[i]];
    T* to = work.head.output + tile.output_row[i] * work.head.output_stride;
    const bool adds_mean = changes_keys(work) && work.head.action == KeyAction::value_mean;
    const float share = adds_mean ? tile.changed_share[tile.wanted[i]] : 0.0F;
    for (std::int64_t d = 0; d < work.shape.width; ++d)
      store(to + d, adds_mean ? from[d] * inverse + share * work.head.mean_value[d] : from[d] * inverse);
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
    for (std::int64_t r = 0; r < tile.rows; r += register_rows)
      observe_rows(work, tile, r, smaller(register_rows, tile.rows - r));
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
