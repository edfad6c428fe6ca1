// The plain version in libtorch's operations, for any device: sequence by sequence, in tiles of queries so
// that the scores of all heads stay below a bound.
#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/attention_variant.h"
#include "ops/unseen_keys.h"

namespace sinkscope {
namespace {

constexpr std::int64_t most_scores_at_once = std::int64_t{1} << 26;  // 256 MB in float32

// One sequence: [H, S, D] in float32, key heads repeated.
at::Tensor heads_first(const at::Tensor& x, std::int64_t first, std::int64_t length, std::int64_t heads) {
  return x.narrow(0, first, length).to(at::kFloat).transpose(0, 1).repeat_interleave(heads / x.size(1), 0);
}

struct Tile {
  std::int64_t sequence, first, begin,
      rows;  // tokens: the sequence's first in the batch, the tile's in the sequence
  KeyRange keys;
  std::int64_t first_key;  // of the sequence, among all keys

  std::int64_t position() const { return keys.first_query + begin; }  // of the first row among the keys
};

// Of each row of the tile, among the keys. queries: row r is token queries[r] of the batch; null: the tile's
// own tokens.
at::Tensor query_positions(const Tile& tile, const std::int64_t* queries, const at::Device& device) {
  at::Tensor position =
      at::arange(tile.position(), tile.position() + tile.rows, at::TensorOptions(at::kLong));
  if (queries != nullptr)
    for (std::int64_t r = 0; r < tile.rows; ++r)
      position.data_ptr<std::int64_t>()[r] = queries[r] - tile.first + tile.keys.first_query;
  return position.to(device);
}

// What the queries of a tile make of the keys, float32 [H, rows, S].
struct TileRows {
  at::Tensor raw;   // over all keys
  at::Tensor used;  // over the kept ones
  at::Tensor all;   // raw, with the slot of a variant in front
  at::Tensor output;
};

void observe_tile(const Tile& tile, const TileRows& rows, const AttentionLayout& layout,
                  AttentionObservation& seen) {
  const at::Tensor& raw = rows.raw;
  const at::Tensor& used = rows.used;
  const auto span_of = [&](const at::Tensor& t) { return t.narrow(-1, tile.first_key, tile.keys.count); };
  const auto own = [&](const at::Tensor& p) {
    return p.diagonal(tile.position(), 1, 2).narrow(1, 0, tile.rows).cpu();
  };
  at::Tensor membership = at::zeros({query_classes, tile.rows}, at::TensorOptions(at::kFloat));
  for (std::int64_t r = 0; r < tile.rows; ++r)
    membership.data_ptr<float>()[layout.query_class[tile.first + tile.begin + r] * tile.rows + r] = 1.0F;
  membership = membership.to(raw.device());
  if (seen.column_sum.defined()) {
    span_of(seen.column_sum).add_(at::einsum("cr,hrs->chs", {membership, raw}).cpu());
    seen.diagonal.narrow(1, tile.first_key + tile.position(), tile.rows).copy_(own(raw));
  }
  if (seen.column_used.defined()) {
    span_of(seen.column_used).add_(used.sum(1).cpu());
    seen.diagonal_used.narrow(1, tile.first_key + tile.position(), tile.rows).copy_(own(used));
  }
  if (seen.row_entropy.defined()) {
    const at::Tensor entropy = -at::xlogy(rows.all, rows.all).sum(2);  // [H, rows]
    seen.row_entropy[tile.sequence].add_(at::matmul(membership, entropy.transpose(0, 1)).cpu());
    seen.row_max[tile.sequence].add_(at::matmul(membership, rows.all.amax(2).transpose(0, 1)).cpu());
  }
  for (auto& [where, map] : seen.maps)
    if (where.first == tile.sequence) map.narrow(0, tile.begin, tile.rows).copy_(raw[where.second].cpu());
}

// The `room` first keys of each row by value, descending; of rows shorter than that, and where the value is
// not finite, no_key.
at::Tensor first_keys(const at::Tensor& values, std::int64_t room) {
  const auto [sorted, order] = at::sort(values, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  const std::int64_t count = std::min(room, values.size(2));
  const at::Tensor keys =
      order.narrow(2, 0, count).masked_fill(at::logical_not(sorted.narrow(2, 0, count).isfinite()), no_key);
  return at::constant_pad_nd(keys, {0, room - count}, no_key).to(at::kInt).cpu();
}

// The lists of a tile, and the last row where it is in it. Rows [H, rows, S], S = tile.keys.count.
void list_tile(const Tile& tile, const at::Tensor& rows, const RowRequest& request,
               AttentionObservation& seen) {
  const std::int64_t last = tile.keys.count - 1 - tile.position();
  if (request.last && last >= 0 && last < tile.rows)
    seen.last_row.narrow(1, tile.first_key, tile.keys.count).copy_(rows.select(1, last).cpu());
  if (request.most == 0 && request.least == 0) return;
  const at::Tensor keys = at::arange(tile.keys.count, at::TensorOptions(at::kLong).device(rows.device()));
  const at::Tensor own = keys.narrow(0, tile.position(), tile.rows).unsqueeze(1) == keys;  // [rows, S]
  at::Tensor listed = at::ones_like(own);
  if (request.listed != nullptr)
    listed = at::from_blob(const_cast<std::uint8_t*>(request.listed) + tile.first_key, {tile.keys.count},
                           at::TensorOptions(at::kByte))
                 .to(rows.device(), at::kBool)
                 .expand_as(own);
  if (request.without_self) listed = at::logical_and(listed, at::logical_not(own));
  const auto unlisted = [&](const at::Tensor& values, const at::Tensor& kept) {
    return values.masked_fill(at::logical_not(kept), -std::numeric_limits<float>::infinity());
  };
  const auto of_tile = [&](const at::Tensor& lists) {
    return lists.narrow(1, tile.first + tile.begin, tile.rows);
  };
  if (request.most > 0) {
    const RowThreshold threshold = row_threshold(request, tile.keys.count);
    const at::Tensor competing = request.without_self ? rows.masked_fill(own, 0.0) : rows;
    const at::Tensor bound = competing.sum(2, /*keepdim=*/true) * threshold.slope + threshold.offset;
    of_tile(seen.row_most)
        .copy_(first_keys(unlisted(rows, at::logical_and(listed, rows > bound)), request.most));
  }
  if (request.least > 0) of_tile(seen.row_least).copy_(first_keys(unlisted(-rows, listed), request.least));
}

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// scores [H, rows, S], removed [H, 1 or rows, S] -> probabilities over the kept keys; rows without any are
// zero and counted. Keys that are not seen have scores of -infinity.
at::Tensor softmax_kept(const at::Tensor& scores, const at::Tensor& removed, std::int64_t& empty_rows) {
  const at::Tensor kept = scores.masked_fill(removed, minus_infinity);
  const at::Tensor nothing_left = (kept == minus_infinity).all(-1, /*keepdim=*/true);
  empty_rows += nothing_left.sum().item<std::int64_t>();
  return at::softmax(kept, -1).masked_fill(nothing_left, 0.0);
}

// Of one sequence, in float32: queries [H, rows, D], keys and values [H, S, D].
struct SequenceHeads {
  at::Tensor queries, keys, values;
};

// What is done to which keys.
struct TileChange {
  at::Tensor keys;  // bool [H, 1 or rows, S]; undefined: none
  KeyChange change;

  bool to(KeyAction action) const { return keys.defined() && change.action == action; }
  bool to_values() const { return to(KeyAction::value_zero) || to(KeyAction::value_mean); }
};

// Lists of keys by token [H, N, room] -> bool [H, rows, S] of the tile.
at::Tensor keys_of_rows(const at::Tensor& lists, const at::Tensor& query_positions, const Tile& tile) {
  const at::Tensor tokens = query_positions + (tile.first - tile.keys.first_query);
  const at::Tensor own = at::index_select(lists, 1, tokens);
  const at::Tensor places = at::where(own == no_key, at::full({}, tile.keys.count, own.options()), own);
  return at::zeros({lists.size(0), tile.rows, tile.keys.count + 1}, own.options().dtype(at::kBool))
      .scatter(2, places, at::ones_like(places, at::kBool))
      .narrow(2, 0, tile.keys.count);
}

void observe_rows(const Tile& tile, const TileRows& rows, const TileChange& change, const RowRequest& request,
                  AttentionObservation& seen) {
  list_tile(tile, request.as_used ? rows.used : rows.raw, request, seen);
  if (request.changed_share && change.keys.defined())
    seen.changed_share.narrow(1, tile.first + tile.begin, tile.rows)
        .copy_((rows.raw * change.keys).sum(2).cpu());
}

// weights [H, rows, S] times the values, some of which are changed.
at::Tensor weigh(const at::Tensor& weights, const at::Tensor& values, const TileChange& change) {
  if (!change.to_values()) return at::matmul(weights, values);
  const at::Tensor kept = at::matmul(weights.masked_fill(change.keys, 0.0), values);
  if (change.change.action == KeyAction::value_zero) return kept;
  const at::Tensor changed = (weights * change.keys).sum(-1, /*keepdim=*/true);  // [H, rows, 1]
  return kept + changed * values.mean(1, /*keepdim=*/true);
}

// `unseen` [rows, S] may be undefined.
TileRows softmax_tile(const SequenceHeads& heads, const at::Tensor& unseen, const TileChange& change,
                      std::int64_t& empty_rows) {
  const double scale = 1.0 / std::sqrt(static_cast<double>(heads.queries.size(2)));
  at::Tensor scores = at::matmul(heads.queries, heads.keys.transpose(1, 2)) * scale;
  if (unseen.defined()) scores.masked_fill_(unseen, minus_infinity);
  const at::Tensor raw = at::softmax(scores, -1);
  at::Tensor used = raw;
  if (change.to(KeyAction::remove)) used = softmax_kept(scores, change.keys, empty_rows);
  if (change.to(KeyAction::scale)) used = at::softmax(scores + change.keys * std::log(change.change.eta), -1);
  return {raw, used, raw, weigh(used, heads.values, change)};
}

// The slot's value for each query head, [H, 1, D].
at::Tensor slot_values(const at::Tensor& values, const VariantOfLayer& layer) {
  return with_slot(values, layer.weights->slot_value).narrow(1, 0, 1);
}

// Rows of a variant with the weights of some keys times eta; what was normalised keeps its sum of magnitudes.
VariantRows scale_rows(const AttentionVariant& variant, const VariantRows& raw, const at::Tensor& keys,
                       double eta) {
  const at::Tensor factor =
      at::where(keys, at::full({}, eta, raw.used.options()), at::ones({}, raw.used.options()));
  const auto sum = [](const at::Tensor& rows) { return rows.abs().sum(-1, /*keepdim=*/true) + 1e-30; };
  at::Tensor used = raw.used * factor;
  if (variant.normalised) used = used * (sum(raw.used) / sum(used));
  return {used, used.abs() / sum(used)};
}

TileRows variant_tile(const VariantOfLayer& layer, const SequenceHeads& heads, const Tile& tile,
                      const at::Tensor& query_positions, bool causal, const at::Tensor& unseen,
                      const TileChange& change, std::int64_t& empty_rows) {
  const std::int64_t slot = slot_columns(*layer.variant);
  const at::Tensor key_positions =
      at::arange(tile.keys.count, at::TensorOptions(at::kLong).device(query_positions.device()));
  const at::Tensor scores =
      variant_scores(layer, heads.queries, with_slot(heads.keys, layer.weights->slot_key), query_positions,
                     key_positions, causal);
  const auto beside_slot = [&](const at::Tensor& hidden) {
    return slot == 0 || !hidden.defined() ? hidden : at::constant_pad_nd(hidden, {1, 0});
  };
  const auto keys_of = [&](const at::Tensor& rows) { return rows.narrow(2, slot, tile.keys.count); };
  const VariantRows raw = variant_rows(*layer.variant, scores, beside_slot(unseen));
  VariantRows used = raw;
  if (change.to(KeyAction::remove)) {
    const at::Tensor hidden =
        unseen.defined() ? at::logical_or(unseen, change.keys) : change.keys.expand({-1, tile.rows, -1});
    if (slot == 0) empty_rows += hidden.all(-1).sum().item<std::int64_t>();
    used = variant_rows(*layer.variant, scores, beside_slot(hidden));
  }
  if (change.to(KeyAction::scale))
    used = scale_rows(*layer.variant, raw, beside_slot(change.keys), change.change.eta);
  at::Tensor output = weigh(keys_of(used.used), heads.values, change);
  if (slot > 0) output = output + at::matmul(used.used.narrow(2, 0, 1), slot_values(heads.values, layer));
  if (layer.weights->value_bias.defined()) output = output + layer.weights->value_bias.unsqueeze(1);
  return {keys_of(raw.shares), keys_of(used.shares), raw.shares, output};
}

void zero(const AttentionObservation& seen) {
  for (const at::Tensor* tensor : {&seen.column_sum, &seen.column_used, &seen.diagonal, &seen.diagonal_used,
                                   &seen.row_entropy, &seen.row_max, &seen.changed_share})
    if (tensor->defined()) tensor->zero_();
}

// Sums over the queries of each class into means.
void finish_statistics(AttentionObservation& seen, const AttentionLayout& layout) {
  if (!seen.row_entropy.defined()) return;
  for (std::int64_t b = 0; b < seen.row_entropy.size(0); ++b)
    for (std::int64_t c = 0; c < query_classes; ++c) {
      const auto first = layout.query_class.begin() + layout.offsets[b];
      const auto last = layout.query_class.begin() + layout.offsets[b + 1];
      const auto queries = static_cast<double>(std::count(first, last, static_cast<std::uint8_t>(c)));
      seen.row_entropy[b][c].div_(queries);  // 0 / 0 = NaN where the class has no query
      seen.row_max[b][c].div_(queries);
    }
}

// First and last place of the sequence's tokens in an ascending list, or in all tokens.
struct Place {
  std::int64_t first, count;
};
Place place_of(const std::vector<std::int64_t>* tokens, std::int64_t first, std::int64_t length) {
  if (tokens == nullptr) return {first, length};
  const auto begin = std::lower_bound(tokens->begin(), tokens->end(), first);
  return {begin - tokens->begin(), std::lower_bound(begin, tokens->end(), first + length) - begin};
}

// The wanted ones of the rows of all queries, [Q, H, D] -> [wanted, H * D].
at::Tensor wanted_rows(const at::Tensor& rows, const AttentionRequest& request) {
  const at::Tensor flat = rows.reshape({rows.size(0), rows.size(1) * rows.size(2)});
  if (request.output_tokens == nullptr) return flat;
  std::vector<std::int64_t> places;
  for (const std::int64_t token : *request.output_tokens)
    places.push_back(place_of(request.query_tokens, token, 1).first);
  const at::Tensor index = at::tensor(at::ArrayRef<std::int64_t>(places), at::TensorOptions(at::kLong));
  return at::index_select(flat, 0, index.to(rows.device()));
}

}  // namespace

void attention_aten(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                    const AttentionLayout& layout, const AttentionRequest& request, at::Tensor& output,
                    AttentionObservation& seen) {
  const std::int64_t heads = q.size(1);
  at::Tensor rows = at::empty(q.sizes(), q.options());
  zero(seen);
  const std::vector<std::int64_t> key_offsets = layout.key_offsets();
  at::Tensor removed, row_removed;
  if (request.row_removed.keys != nullptr && request.row_removed.room > 0)
    row_removed =
        at::from_blob(const_cast<std::int32_t*>(request.row_removed.keys),
                      {heads, layout.offsets.back(), request.row_removed.room}, at::TensorOptions(at::kInt))
            .to(q.device(), at::kLong);
  if (request.removed != nullptr)
    removed = at::from_blob(const_cast<std::uint8_t*>(request.removed), {heads, key_offsets.back()},
                            at::TensorOptions(at::kByte))
                  .to(q.device(), at::kBool);
  for (std::size_t b = 0; b + 1 < layout.offsets.size(); ++b) {
    const std::int64_t first = layout.offsets[b];
    const std::int64_t length = layout.offsets[b + 1] - first;
    const Place place = place_of(request.query_tokens, first, length);
    if (place.count == 0) continue;
    const KeyRange range = layout.keys_of(static_cast<std::int64_t>(b));
    const SequenceHeads sequence{heads_first(q, place.first, place.count, heads),
                                 heads_first(k, range.begin, range.count, heads),
                                 heads_first(v, range.begin, range.count, heads)};
    const std::int64_t step = std::max<std::int64_t>(1, most_scores_at_once / (heads * range.count));
    for (std::int64_t begin = 0; begin < place.count; begin += step) {
      const Tile tile{static_cast<std::int64_t>(b),        first, begin,
                      std::min(step, place.count - begin), range, key_offsets[b]};
      const std::int64_t* own =
          request.query_tokens == nullptr ? nullptr : request.query_tokens->data() + place.first + begin;
      const at::Tensor positions = query_positions(tile, own, q.device());
      const at::Tensor unseen =
          layout.causal ? unseen_keys(positions, range.count, layout.window, layout.prefix) : at::Tensor();
      TileChange change{{}, request.change};
      if (removed.defined()) change.keys = removed.narrow(1, key_offsets[b], range.count).unsqueeze(1);
      if (row_removed.defined()) change.keys = keys_of_rows(row_removed, positions, tile);
      const SequenceHeads part{sequence.queries.narrow(1, begin, tile.rows), sequence.keys, sequence.values};
      const TileRows tile_rows = request.layer_variant.variant == nullptr
                                     ? softmax_tile(part, unseen, change, seen.empty_rows[b])
                                     : variant_tile(request.layer_variant, part, tile, positions,
                                                    layout.causal, unseen, change, seen.empty_rows[b]);
      observe_tile(tile, tile_rows, layout, seen);
      if (request.rows.asks()) observe_rows(tile, tile_rows, change, request.rows, seen);
      rows.narrow(0, place.first + begin, tile.rows).copy_(tile_rows.output.transpose(0, 1));
    }
  }
  finish_statistics(seen, layout);
  const at::Tensor wanted = wanted_rows(rows, request);
  if (output.defined())
    output.copy_(wanted);
  else
    output = wanted;
}

}  // namespace sinkscope
