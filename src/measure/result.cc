#include "measure/result.h"

#include <algorithm>
#include <cmath>

#include "measure/quotient.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson mean_of(const SampleMean& mean) { return quotient(mean.sum, mean.samples); }

// Of the mean over samples; one sample has none.
OrderedJson standard_error(const SampleMean& mean) {
  if (mean.samples < 2) return nullptr;
  const auto n = static_cast<double>(mean.samples);
  const double variance = std::max(0.0, (mean.squares - mean.sum * mean.sum / n) / (n - 1));
  return std::sqrt(variance / n);
}

OrderedJson share_by_threshold(const ShareSums& share, const DetectionOptions& options) {
  auto points = OrderedJson::array();
  const std::vector<double> grid = sweep_grid(options);
  const std::vector<std::uint64_t> above = share.margins.above_grid();
  for (std::size_t i = 0; i < grid.size(); ++i)
    points.push_back({{*threshold_name(options.rule), grid[i]}, {"share", quotient(above[i], share.cells)}});
  return points;
}

OrderedJson calibration(const ShareSums& share, const MeasureOptions& options) {
  const auto name = threshold_name(options.detection.rule);
  if (!name || share.cells == 0) return nullptr;
  const double wanted = options.wanted_share * static_cast<double>(share.cells);
  const MarginCounts::Found found = share.margins.find(static_cast<std::uint64_t>(wanted));
  return {{"wanted_share", options.wanted_share},
          {*name, found.threshold},
          {"share", quotient(found.above, share.cells)}};
}

OrderedJson sinks_per_layer(const Sums& sums) {
  if (!sums.same_shape) return nullptr;
  auto layers = OrderedJson::array();
  for (const std::uint64_t sinks : sums.share.layer_sinks)
    layers.push_back(quotient(sinks, sums.share.steps * sums.heads));
  return layers;
}

// [L][H] of values that cell(l * H + h) gives.
template <typename Cell>
OrderedJson by_head(const Sums& sums, Cell&& cell) {
  if (!sums.same_shape) return nullptr;
  auto layers = OrderedJson::array();
  for (std::size_t l = 0; l < sums.layers; ++l) {
    auto heads = OrderedJson::array();
    for (std::size_t h = 0; h < sums.heads; ++h) heads.push_back(cell(l * sums.heads + h));
    layers.push_back(std::move(heads));
  }
  return layers;
}

OrderedJson tracks_of(const Sums& sums) {
  const TrackSums& t = sums.tracks;
  std::uint64_t lives = 0, touching = 0, jumps = 0;
  double steps = 0, distances = 0;
  auto lifetimes = OrderedJson::array(), jump_list = OrderedJson::array();
  for (const auto& [length, count] : t.lifetimes) {
    lives += count.lives;
    touching += count.touching;
    steps += static_cast<double>(length) * static_cast<double>(count.lives);
    lifetimes.push_back({{"steps", length}, {"lives", count.lives}, {"touching_an_end", count.touching}});
  }
  for (const auto& [distance, count] : t.jumps) {
    jumps += count;
    distances += static_cast<double>(distance) * static_cast<double>(count);
    jump_list.push_back({{"distance", distance}, {"jumps", count}});
  }
  return {{"lives", lives},
          {"lives_touching_an_end", touching},
          {"births", t.births},
          {"deaths", t.deaths},
          {"mean_lifetime", quotient(steps, lives)},
          {"lifetimes", lifetimes},
          {"jump_count", jumps},
          {"mean_jump", quotient(distances, jumps)},
          {"jumps", jump_list},
          {"static_share", quotient(t.stay, t.ever)},
          {"jaccard", quotient(t.jaccard, t.jaccard_pairs)},
          {"drift", mean_of(sums.drift.slope)},
          {"drift_standard_error", standard_error(sums.drift.slope)},
          {"spatial_variance", mean_of(sums.drift.spatial_variance)},
          {"temporal_variance", mean_of(sums.drift.temporal_variance)}};
}

OrderedJson split_list(const SplitSums& splits, bool pooled) {
  auto list = OrderedJson::array();
  for (const SplitSink& split : splits.list) {
    OrderedJson entry;
    if (pooled) entry["run"] = split.run;
    entry.update({{"sample", split.sample},
                  {"step", split.step},
                  {"layer", split.layer},
                  {"head", split.head},
                  {"masked", split.masked},
                  {"unmasked", split.unmasked}});
    list.push_back(std::move(entry));
  }
  return list;
}

// frequency among the sinks, share of the positions, and how much the one exceeds the other.
void add_lift(OrderedJson& entry, const TokenCount& count, const TokenCount& all) {
  entry["frequency"] = quotient(count.sinks, all.sinks);
  entry["share"] = quotient(count.positions, all.positions);
  entry["lift"] = all.sinks == 0
                      ? OrderedJson(nullptr)
                      : quotient(static_cast<double>(count.sinks) * static_cast<double>(all.positions),
                                 static_cast<double>(count.positions) * static_cast<double>(all.sinks));
}

// Tokens that are sinks at least once, the most frequent first.
OrderedJson tokens_of(const Sums& sums, const std::function<std::optional<std::string>(std::int32_t)>& text) {
  if (!sums.same_tokens) return nullptr;
  std::vector<std::pair<std::int32_t, TokenCount>> found;
  for (const auto& entry : sums.tokens.by_id)
    if (entry.second.sinks > 0) found.emplace_back(entry);
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.second.sinks > b.second.sinks; });
  auto list = OrderedJson::array();
  for (const auto& [id, count] : found) {
    const std::optional<std::string> name = text(id);
    OrderedJson entry{{"id", id}, {"text", name ? OrderedJson(*name) : OrderedJson(nullptr)}};
    add_lift(entry, count, sums.tokens.all);
    list.push_back(std::move(entry));
  }
  return list;
}

OrderedJson positions_of(const TokenSums& tokens) {
  auto places = OrderedJson::array(), distances = OrderedJson::array();
  for (std::size_t i = 0; i < place_count; ++i) {
    OrderedJson entry{{"from", static_cast<double>(i) / place_count},
                      {"to", static_cast<double>(i + 1) / place_count}};
    add_lift(entry, tokens.by_place[i], tokens.all);
    places.push_back(std::move(entry));
  }
  double sum = 0;
  std::uint64_t sinks = 0;
  for (const auto& [distance, count] : tokens.by_distance) {
    OrderedJson entry{{"distance", distance}};
    add_lift(entry, count, tokens.all);
    distances.push_back(std::move(entry));
    sum += static_cast<double>(distance) * static_cast<double>(count.sinks);
    sinks += count.sinks;
  }
  OrderedJson without;
  add_lift(without, tokens.without_masks, tokens.all);
  return {{"mean_relative_position", quotient(tokens.relative_position, tokens.all.sinks)},
          {"relative_positions", places},
          {"mean_mask_distance", quotient(sum, sinks)},
          {"mask_distances", distances},
          {"without_masks", without}};
}

OrderedJson status_of(const TokenSums& tokens) {
  OrderedJson result;
  for (std::size_t i = 0; i < status_count; ++i)
    add_lift(result[status_names[i]], tokens.by_status[i], tokens.all);
  return result;
}

OrderedJson absorption_of(const Sums& sums) {
  if (!sums.same_shape) return nullptr;
  auto layers = OrderedJson::array();
  for (std::size_t l = 0; l < sums.layers; ++l)
    layers.push_back(quotient(sums.overlap.sink_mass[l], sums.overlap.mass[l]));
  return layers;
}

OrderedJson overlap_of(const Sums& sums) {
  if (!sums.same_shape) return nullptr;
  auto layers = OrderedJson::array(), heads = OrderedJson::array();
  const auto index = [](const Agreement& agreement) { return quotient(agreement.sum, agreement.pairs); };
  for (std::size_t a = 0; a < sums.layers; ++a) {
    auto row = OrderedJson::array();
    for (std::size_t b = 0; b < sums.layers; ++b)
      row.push_back(index(sums.overlap.layers[a * sums.layers + b]));
    layers.push_back(std::move(row));
    heads.push_back(index(sums.overlap.heads[a]));
  }
  return {{"layers", layers}, {"heads", heads}};
}

}  // namespace

OrderedJson rule_of(const DetectionOptions& options) {
  const auto where = [&](bool used, auto value) { return used ? OrderedJson(value) : OrderedJson(nullptr); };
  const SinkRule rule = options.rule;
  return {{"rule", name_of(rule)},
          {"scale", name_of(options.scale)},
          {"epsilon", where(rule == SinkRule::paper || rule == SinkRule::visible, options.epsilon)},
          {"z", where(rule == SinkRule::zscore || rule == SinkRule::soft, options.z)},
          {"steepness", where(rule == SinkRule::soft, options.steepness)},
          {"top_k", where(rule == SinkRule::topk, options.top_k)}};
}

OrderedJson aggregation_texts() {
  return {
      {"share_of_sinks", "sinks / cells; a cell is one (sample, step, layer, head, key)"},
      {"share_by_epsilon", "sinks / cells at each threshold"},
      {"calibration",
       "the smallest threshold, on a grid of 2^-11 of its value, with at most that share of cells"},
      {"sinks_per_layer", "mean over samples, steps and heads of the number of sinks"},
      {"top_sink", "mean over samples and steps with a sink of the largest sink's C, on the scale"},
      {"largest_column", "mean over samples and steps of max C, sink or not, on the scale"},
      {"tracks",
       "counts added up over samples, layers and heads; static_share and jaccard of these counts; drift and "
       "variances: mean over samples"},
      {"split_sinks", "split_count / split_maps: maps with masked and other queries, added up"},
      {"tokens", "sinks added up over samples, steps, layers and heads; positions over samples and steps"},
      {"absorption", "attention of the sinks / all attention, added up over samples, steps and heads"},
      {"overlap", "mean over samples and steps (and pairs of heads) with a sink in one of the two sets"},
      {"effect",
       "means over the predictions of all samples and of the steps at which keys were removed; correlations: "
       "within a step, mean over steps by their predictions"}};
}

OrderedJson result_of(const Sums& sums, bool pooled, const MeasureOptions& options,
                      const std::function<std::optional<std::string>(std::int32_t)>& text) {
  const ShareSums& share = sums.share;
  OrderedJson result{{"samples", sums.samples},
                     {"steps", share.steps},
                     {"layers", sums.same_shape ? OrderedJson(sums.layers) : OrderedJson(nullptr)},
                     {"heads", sums.same_shape ? OrderedJson(sums.heads) : OrderedJson(nullptr)},
                     {"positions", {{"least", sums.least_positions}, {"most", sums.most_positions}}}};
  result.update(rule_of(options.detection));
  result["share_of_sinks"] = quotient(share.sinks, share.cells);
  if (options.detection.rule == SinkRule::soft)
    result["mean_membership"] = quotient(share.membership, share.cells);
  result["share_by_epsilon"] = share_by_threshold(share, options.detection);
  result["calibration"] = calibration(share, options);
  result["sinks_per_layer"] = sinks_per_layer(sums);
  result["top_sink"] =
      by_head(sums, [&](std::size_t map) { return quotient(share.top_sink[map], share.top_steps[map]); });
  result["largest_column"] =
      by_head(sums, [&](std::size_t map) { return quotient(share.largest_column[map], share.steps); });
  result["tracks"] = tracks_of(sums);
  result["split_maps"] = sums.splits.maps;
  result["split_count"] = sums.splits.splits;
  result["split_share"] = quotient(sums.splits.splits, sums.splits.maps);
  result["split_sinks"] = split_list(sums.splits, pooled);
  result["tokens"] = tokens_of(sums, text);
  result["status"] = status_of(sums.tokens);
  result["where"] = positions_of(sums.tokens);
  result["absorption"] = absorption_of(sums);
  result["overlap"] = overlap_of(sums);
  result["effect"] = effect_json(sums.effect);
  return result;
}

}  // namespace sinkscope
