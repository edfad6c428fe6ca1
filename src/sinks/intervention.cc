// Which keys an intervention removes, from the previous step's column sums.
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "sinks/ranking.h"

namespace sinkscope {
namespace {

void check_lengths(std::size_t columns, std::size_t diagonal, bool exclude_self) {
  if (diagonal != columns && (exclude_self || diagonal != 0))
    throw Error("{} column sums came with {} values of the diagonal; both must be one per key", columns,
                diagonal);
}

// Step 3 of the definition: those among which the largest are taken.
std::vector<int> candidates_of(std::span<const double> scores, const InterventionOptions& options) {
  switch (options.rule) {
    case SinkRule::paper:
      return above_thresholds(compare(scores, {.rule = options.rule, .scale = options.scale}),
                              options.epsilon);
    case SinkRule::topk:
      return all_positions(scores.size());
    default:
      throw UsageError("--sink-rule {} only measures; paper and topk choose keys to remove",
                       name_of(options.rule));
  }
}

// Keys that may be masked at all, ascending.
std::vector<int> allowed_keys(const KeyScores& scores, const InterventionOptions& options) {
  std::vector<int> keys = all_positions(scores.columns.size());
  if (!scores.classes.empty())
    std::erase_if(keys, [&](int key) {
      return ((options.classes >> scores.classes[static_cast<std::size_t>(key)]) & 1) == 0;
    });
  return keys;
}

// Candidates by the rule, then by rank, then the share that is kept. `allowed` ascends.
std::vector<int> pick(std::span<const double> scores, const std::vector<int>& allowed,
                      const InterventionOptions& options) {
  const std::vector<int> by_rule = candidates_of(scores, options);
  std::vector<int> candidates;
  std::set_intersection(by_rule.begin(), by_rule.end(), allowed.begin(), allowed.end(),
                        std::back_inserter(candidates));
  std::vector<int> picked = largest(scores, std::move(candidates), options.top_k);
  picked.resize(share_of(picked.size(), options.mask_sink_ratio));
  return picked;
}

// `wanted` of the eligible keys, or all of them where there are fewer; those are missing.
void draw_keys(const std::vector<int>& eligible, std::int64_t wanted, const DrawIndices& draw,
               ChosenKeys& chosen) {
  const auto count = static_cast<std::int64_t>(eligible.size());
  chosen.missing += static_cast<int>(std::max<std::int64_t>(0, wanted - count));
  if (wanted == 0 || count == 0) return;
  for (const std::int64_t index : draw(count, std::min(wanted, count)))
    chosen.keys.push_back(eligible[static_cast<std::size_t>(index)]);
}

ChosenKeys bottom_keys(std::span<const double> scores, const std::vector<int>& others, std::size_t wanted) {
  std::vector<double> negated(scores.begin(), scores.end());
  for (double& score : negated) score = -score;
  ChosenKeys chosen{largest(negated, others, static_cast<int>(wanted)), 0};
  chosen.missing = static_cast<int>(wanted - chosen.keys.size());
  return chosen;
}

ChosenKeys matched_keys(const KeyScores& scores, const std::vector<int>& picked,
                        const std::vector<int>& others, const DrawIndices& draw) {
  const auto of_class = [&](const std::vector<int>& keys, std::uint8_t wanted) {
    std::vector<int> found;
    for (const int key : keys)
      if (scores.classes.empty() || scores.classes[static_cast<std::size_t>(key)] == wanted)
        found.push_back(key);
    return found;
  };
  ChosenKeys chosen;
  const int classes = scores.classes.empty() ? 1 : 3;
  for (std::uint8_t c = 0; c < classes; ++c)
    draw_keys(of_class(others, c), static_cast<std::int64_t>(of_class(picked, c).size()), draw, chosen);
  return chosen;
}

}  // namespace

void validate(const InterventionOptions& options) {
  candidates_of({}, options);
  if (options.top_k < 0)
    throw UsageError("--sink-top-k must be at least 0 (0 removes nothing), not {}", options.top_k);
  if (!(options.epsilon >= 0) || !std::isfinite(options.epsilon))
    throw UsageError("--epsilon must be a finite number of at least 0, not {}", options.epsilon);
  if (!(options.mask_sink_ratio >= 0 && options.mask_sink_ratio <= 1))
    throw UsageError("--mask-sink-ratio must lie between 0 and 1, not {}", options.mask_sink_ratio);
  if (options.change.action == KeyAction::scale && !(options.change.eta >= 1e-6 && options.change.eta <= 1e6))
    throw UsageError(
        "--sink-eta must lie between 1e-6 and 1e6, not {}; --sink-action remove is its limit at 0",
        options.change.eta);
}

ChosenKeys choose_keys(const KeyScores& scores, const InterventionOptions& options, const DrawIndices& draw) {
  check_lengths(scores.columns.size(), scores.diagonal.size(), options.exclude_self);
  if (options.top_k == 0) return {};
  const std::vector<double> values =
      scores_of(scores.columns, options.exclude_self ? scores.diagonal : std::span<const float>());
  const std::vector<int> allowed = allowed_keys(scores, options);
  std::vector<int> picked = pick(values, allowed, options);
  if (options.control == SinkControl::none) return {std::move(picked), 0};
  std::vector<int> others = allowed;
  std::erase_if(others,
                [&](int key) { return std::find(picked.begin(), picked.end(), key) != picked.end(); });
  switch (options.control) {
    case SinkControl::bottom:
      return bottom_keys(values, others, picked.size());
    case SinkControl::matched:
      return matched_keys(scores, picked, others, draw);
    default: {
      ChosenKeys chosen;
      draw_keys(others, static_cast<std::int64_t>(picked.size()), draw, chosen);
      return chosen;
    }
  }
}

RemovedKeys choose_removed_keys(const StepScores& scores, const InterventionOptions& options,
                                const DrawIndices& draw) {
  const std::size_t positions = scores.positions;
  if (positions == 0 || scores.columns.size() % (positions * scores.heads) != 0)
    throw Error("{} column sums are no whole number of rows of {} keys", scores.columns.size(), positions);
  check_lengths(scores.columns.size(), scores.diagonal.size(), options.exclude_self);
  RemovedKeys result{std::vector<std::uint8_t>(scores.columns.size(), 0), 0};
  if (!options.steps.contains(scores.step)) return result;
  for (std::size_t row = 0; row < scores.columns.size() / positions; ++row) {
    const bool named = options.layers.contains(static_cast<std::int64_t>(row / scores.heads)) &&
                       options.heads.contains(static_cast<std::int64_t>(row % scores.heads));
    if (!named) continue;
    const auto part = [&](std::span<const float> all) {
      return all.empty() ? all : all.subspan(row * positions, positions);
    };
    const ChosenKeys chosen =
        choose_keys({part(scores.columns), part(scores.diagonal), scores.classes}, options, draw);
    for (const int key : chosen.keys) result.removed[row * positions + static_cast<std::size_t>(key)] = 1;
    result.missing += chosen.missing;
  }
  return result;
}

}  // namespace sinkscope
