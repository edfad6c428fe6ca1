// Which keys an intervention removes, from the previous step's column sums.
#include <sinkscope/error.h>
#include <sinkscope/sinks.h>

#include <cmath>

#include "sinks/ranking.h"

namespace sinkscope {
namespace {

void check_lengths(std::size_t columns, std::size_t diagonal, bool exclude_self) {
  if (diagonal != columns && (exclude_self || diagonal != 0))
    throw Error("{} column sums came with {} values of the diagonal; both must be one per key", columns,
                diagonal);
}

// ceil(ratio * count). The product is rounded: 0.07 * 100 is slightly above 7 and must still give 7.
std::size_t share_of(std::size_t count, double ratio) {
  constexpr double just_below_one = 1 - 1e-12;
  return static_cast<std::size_t>(std::ceil(ratio * static_cast<double>(count) * just_below_one));
}

// Step 3 of the definition: those among which the largest are taken.
std::vector<int> candidates_of(std::span<const double> scores, const InterventionOptions& options) {
  switch (options.rule) {
    case SinkRule::paper:
      return above_others(scores, options.scale, options.epsilon);
    case SinkRule::topk:
      return all_positions(scores.size());
    default:
      throw UsageError("--sink-rule {} only measures; paper and topk choose keys to remove",
                       name_of(options.rule));
  }
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
}

std::vector<int> choose_keys(std::span<const float> columns, std::span<const float> diagonal,
                             const InterventionOptions& options) {
  check_lengths(columns.size(), diagonal.size(), options.exclude_self);
  if (options.top_k == 0) return {};
  const std::vector<double> scores =
      scores_of(columns, options.exclude_self ? diagonal : std::span<const float>());
  // Candidates by the rule, then by rank, then the share that is kept.
  std::vector<int> picked = largest(scores, candidates_of(scores, options), options.top_k);
  picked.resize(share_of(picked.size(), options.mask_sink_ratio));
  return picked;
}

std::vector<std::uint8_t> choose_removed_keys(std::span<const float> columns, std::span<const float> diagonal,
                                              std::size_t positions, const InterventionOptions& options) {
  if (positions == 0 || columns.size() % positions != 0)
    throw Error("{} column sums are no whole number of rows of {} keys", columns.size(), positions);
  check_lengths(columns.size(), diagonal.size(), options.exclude_self);
  std::vector<std::uint8_t> removed(columns.size(), 0);
  for (std::size_t row = 0; row < columns.size(); row += positions) {
    const auto row_diagonal = diagonal.empty() ? diagonal : diagonal.subspan(row, positions);
    for (const int key : choose_keys(columns.subspan(row, positions), row_diagonal, options))
      removed[row + static_cast<std::size_t>(key)] = 1;
  }
  return removed;
}

}  // namespace sinkscope
