// Which keys an intervention takes from each single query, from lists of what the query attended.
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <array>
#include <limits>

#include "sinks/ranking.h"

namespace sinkscope {
namespace {

// Keys in ascending order, and each one's place among them.
struct KeySet {
  std::vector<std::int32_t> keys;
  std::vector<std::int32_t> place;  // [S], no_key outside

  explicit KeySet(std::size_t positions) : place(positions, no_key) {}
  void add(std::size_t key) {
    place[key] = static_cast<std::int32_t>(keys.size());
    keys.push_back(static_cast<std::int32_t>(key));
  }
};

// What all queries of a step share.
struct StepKeys {
  KeySet all;                      // that may be masked
  std::array<KeySet, 3> of_class;  // of these, those of each class
};

StepKeys keys_of(const StepRows& rows, const InterventionOptions& options) {
  const std::size_t positions = rows.classes.size();
  StepKeys keys{KeySet(positions), {KeySet(positions), KeySet(positions), KeySet(positions)}};
  for (std::size_t j = 0; j < positions; ++j) {
    const std::uint8_t own = rows.classes[j];
    if (own >= position_class_names.size()) throw Error("key {} is of the unknown class {}", j, own);
    if (((options.classes >> own) & 1) == 0) continue;
    keys.all.add(j);
    keys.of_class[own].add(j);
  }
  return keys;
}

// Buffers of one query, kept from one to the next.
struct Query {
  std::int32_t self = 0;
  std::vector<std::int32_t> picked;
  std::vector<std::int32_t> taken;  // places in a KeySet, ascending
  std::vector<std::int32_t> chosen;
};

void take(std::int32_t place, std::vector<std::int32_t>& taken) {
  taken.insert(std::upper_bound(taken.begin(), taken.end(), place), place);
}

// `wanted` of the set's keys that are neither picked nor the query itself where that is left out. Returns how
// many there were not.
std::size_t draw_keys(const KeySet& set, std::size_t wanted, bool without_self, const DrawUniform& draw,
                      Query& query) {
  query.taken.clear();
  for (const std::int32_t key : query.picked)
    if (set.place[static_cast<std::size_t>(key)] != no_key)
      take(set.place[static_cast<std::size_t>(key)], query.taken);
  const std::int32_t self = set.place[static_cast<std::size_t>(query.self)];
  if (without_self && self != no_key) take(self, query.taken);
  const std::size_t drawn = std::min(wanted, set.keys.size() - query.taken.size());
  for (std::size_t i = 0; i < drawn; ++i) {
    const std::size_t others = set.keys.size() - query.taken.size();
    auto place = static_cast<std::int32_t>(
        std::min(others - 1, static_cast<std::size_t>(draw() * static_cast<double>(others))));
    for (const std::int32_t taken : query.taken) {
      if (taken > place) break;
      ++place;
    }
    take(place, query.taken);
    query.chosen.push_back(set.keys[static_cast<std::size_t>(place)]);
  }
  return wanted - drawn;
}

std::size_t lowest_keys(const KeySet& set, std::span<const std::int32_t> least, Query& query) {
  for (const std::int32_t key : least) {
    if (key == no_key || query.chosen.size() == query.picked.size()) break;
    const bool other = std::find(query.picked.begin(), query.picked.end(), key) == query.picked.end();
    if (other && set.place[static_cast<std::size_t>(key)] != no_key) query.chosen.push_back(key);
  }
  return query.picked.size() - query.chosen.size();
}

void check_keys(std::span<const std::int32_t> list, std::size_t positions) {
  for (const std::int32_t key : list)
    if (key < no_key || key >= static_cast<std::int32_t>(positions))
      throw Error("a query's list names key {} of {}", key, positions);
}

// Fills `chosen`; returns how many keys a control did not find.
std::size_t choose_for(std::span<const std::int32_t> most, std::span<const std::int32_t> least,
                       const StepRows& rows, const StepKeys& keys, const InterventionOptions& options,
                       const DrawUniform& draw, Query& query) {
  query.picked.clear();
  query.chosen.clear();
  for (const std::int32_t key : most) {
    if (key == no_key) break;
    if (keys.all.place[static_cast<std::size_t>(key)] != no_key) query.picked.push_back(key);
  }
  query.picked.resize(share_of(query.picked.size(), options.mask_sink_ratio));
  std::size_t missing = 0;
  switch (options.control) {
    case SinkControl::none:
      query.chosen = query.picked;
      break;
    case SinkControl::random:
      return draw_keys(keys.all, query.picked.size(), options.exclude_self, draw, query);
    case SinkControl::bottom:
      return lowest_keys(keys.all, least, query);
    case SinkControl::matched:
      for (std::size_t c = 0; c < keys.of_class.size(); ++c) {
        const auto wanted = static_cast<std::size_t>(std::count_if(
            query.picked.begin(), query.picked.end(),
            [&](std::int32_t key) { return rows.classes[static_cast<std::size_t>(key)] == c; }));
        missing += draw_keys(keys.of_class[c], wanted, options.exclude_self, draw, query);
      }
      break;
  }
  return missing;
}

void check_lengths(const StepRows& rows, const InterventionOptions& options) {
  const std::size_t map = rows.heads * rows.queries * rows.room;
  const std::size_t least = options.control == SinkControl::bottom ? 2 * rows.most.size() : 0;
  if (map == 0 || rows.most.size() % map != 0 || rows.least.size() < least)
    throw Error("lists of {} and {} keys are not those of {} heads of {} queries of {} keys",
                rows.most.size(), rows.least.size(), rows.heads, rows.queries, rows.room);
  if (rows.queries > std::numeric_limits<std::uint16_t>::max())
    throw Error("{} queries; at most 65535 can be counted", rows.queries);
  if (rows.first_query + rows.queries > rows.classes.size())
    throw Error("queries {} to {} of {} positions", rows.first_query, rows.first_query + rows.queries,
                rows.classes.size());
  check_keys(rows.most, rows.classes.size());
  check_keys(rows.least, rows.classes.size());
}

}  // namespace

RowRequest row_request(const InterventionOptions& options, std::span<const std::uint8_t> classes,
                       std::vector<std::uint8_t>& listed) {
  RowRequest request;
  request.most = options.top_k;
  if (options.control == SinkControl::bottom) request.least = 2 * request.most;
  request.every_key = options.rule == SinkRule::topk;
  request.on_sums = options.scale == SinkScale::sum;
  request.epsilon = options.scale == SinkScale::percent ? options.epsilon / 100 : options.epsilon;
  request.without_self = options.exclude_self;
  request.as_used = options.from == SinkSource::masked;
  listed.clear();
  constexpr std::uint8_t all = (1 << position_class_names.size()) - 1;
  if ((options.classes & all) == all) return request;
  for (const std::uint8_t own : classes)
    listed.push_back(static_cast<std::uint8_t>((options.classes >> own) & 1));
  request.listed = listed.data();
  return request;
}

RemovedRowKeys choose_removed_row_keys(const StepRows& rows, const InterventionOptions& options,
                                       const DrawUniform& draw) {
  check_lengths(rows, options);
  const std::size_t map = rows.queries * rows.room, positions = rows.classes.size();
  const std::size_t maps = rows.most.size() / map;
  RemovedRowKeys result;
  result.keys.assign(rows.most.size(), no_key);
  result.queries.assign(maps * positions, 0);
  if (!options.steps.contains(rows.step)) return result;
  const StepKeys keys = keys_of(rows, options);
  Query query;
  for (std::size_t m = 0; m < maps; ++m) {
    if (!options.layers.contains(static_cast<std::int64_t>(m / rows.heads)) ||
        !options.heads.contains(static_cast<std::int64_t>(m % rows.heads)))
      continue;
    for (std::size_t q = 0; q < rows.queries; ++q) {
      const std::size_t first = m * map + q * rows.room;
      query.self = static_cast<std::int32_t>(rows.first_query + q);
      const std::span<const std::int32_t> least =
          rows.least.empty() ? rows.least : rows.least.subspan(2 * first, 2 * rows.room);
      result.missing += static_cast<std::int64_t>(
          choose_for(rows.most.subspan(first, rows.room), least, rows, keys, options, draw, query));
      std::copy(query.chosen.begin(), query.chosen.end(),
                result.keys.begin() + static_cast<std::ptrdiff_t>(first));
      for (const std::int32_t key : query.chosen)
        ++result.queries[m * positions + static_cast<std::size_t>(key)];
      result.count += static_cast<std::int64_t>(query.chosen.size());
    }
  }
  return result;
}

}  // namespace sinkscope
