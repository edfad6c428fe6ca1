#include "measure/splits.h"

namespace sinkscope {
namespace {

// The largest sink of `queries` queries whose sums these are, as if there were S of them; -1 without.
int largest_sink(std::span<const float> sums, double queries, const DetectionOptions& options) {
  const auto factor = static_cast<double>(sums.size()) / queries;
  std::vector<float> scaled(sums.begin(), sums.end());
  for (float& sum : scaled) sum = static_cast<float>(sum * factor);
  return largest_of(sums, detect_sinks(scaled, options));
}

}  // namespace

void add_step(SplitSums& sums, const Step& step, const DetectionOptions& options, const SplitSink& place) {
  const double masked_queries = step.queries[static_cast<std::size_t>(TokenStatus::masked)];
  const double other_queries = step.queries[static_cast<std::size_t>(TokenStatus::prompt)] +
                               step.queries[static_cast<std::size_t>(TokenStatus::decoded)];
  if (masked_queries == 0 || other_queries == 0) return;
  std::vector<float> others(step.shape.positions);
  for (std::size_t map = 0; map < step.shape.maps(); ++map) {
    const auto prompt = step.columns_of(TokenStatus::prompt, map);
    const auto decoded = step.columns_of(TokenStatus::decoded, map);
    for (std::size_t j = 0; j < others.size(); ++j) others[j] = prompt[j] + decoded[j];
    const int masked = largest_sink(step.columns_of(TokenStatus::masked, map), masked_queries, options);
    const int unmasked = largest_sink(others, other_queries, options);
    ++sums.maps;
    if (masked < 0 || unmasked < 0 || masked == unmasked) continue;
    ++sums.splits;
    if (sums.list.size() < most_listed_splits)
      sums.list.push_back({place.run, place.sample, step.number, map / step.shape.heads,
                           map % step.shape.heads, masked, unmasked});
  }
}

void add(SplitSums& sums, const SplitSums& other) {
  sums.maps += other.maps;
  sums.splits += other.splits;
  for (const SplitSink& split : other.list)
    if (sums.list.size() < most_listed_splits) sums.list.push_back(split);
}

}  // namespace sinkscope
