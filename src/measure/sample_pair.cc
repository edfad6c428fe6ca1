#include "measure/sample_pair.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "measure/statistics.h"

namespace sinkscope {
namespace {

// Generated positions by the step that unmasked them first. Positions that stay masked come after all others.
class UnmaskingOrder {
 public:
  UnmaskingOrder(const Trajectory& sample, std::int32_t mask_id)
      : sample_(sample), mask_id_(mask_id), steps_(sample.positions(), never) {}

  void add_state(std::size_t t) {
    const std::span<const std::int32_t> row = sample_.state(t);
    for (std::size_t j = sample_.prompt_length(); j < row.size(); ++j)
      if (steps_[j] == never && row[j] != mask_id_) steps_[j] = static_cast<std::int64_t>(t);
  }

  /// 0: was no mask to begin with.
  std::int64_t step(std::size_t position) const { return steps_[position]; }

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  const Trajectory& sample_;
  std::int32_t mask_id_;
  std::vector<std::int64_t> steps_;  // [S]
};

void compare_outputs(const Trajectory& a, const Trajectory& b, SamplePair& pair) {
  const std::span<const std::int32_t> ids_a = a.generated(), ids_b = b.generated();
  pair.tokens_a = ids_a.size();
  pair.tokens_b = ids_b.size();
  const std::size_t both = std::min(ids_a.size(), ids_b.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (ids_a[i] == ids_b[i])
      ++pair.equal;
    else if (!pair.first_difference)
      pair.first_difference = i;
  }
  if (!pair.first_difference && ids_a.size() != ids_b.size()) pair.first_difference = both;
}

void compare_confidences(const Trajectory& a, const Trajectory& b, std::size_t t, SamplePair& pair) {
  ConfidenceChange change;
  const std::vector<float> from_a = a.confidence(t), from_b = b.confidence(t);
  for (std::size_t j = 0; j < from_a.size(); ++j)
    if (std::isfinite(from_a[j]) && std::isfinite(from_b[j])) change.add(from_a[j], from_b[j]);
  pair.all_steps->add(change);
  if (pair.parts_at) return;
  pair.before_parting->add(change);
  if (!pair.keys_masked) return;
  const std::size_t keys = b.masked_keys(t);
  if (keys == 0) return;
  ++pair.steps_masked;
  pair.masked_keys += keys;
  pair.keys_masked->add(change);
}

std::optional<double> tau_of(const Trajectory& sample, const UnmaskingOrder& a, const UnmaskingOrder& b) {
  std::vector<std::int64_t> steps_a, steps_b;
  for (std::size_t j = sample.prompt_length(); j < sample.positions(); ++j) {
    if (a.step(j) == 0 || b.step(j) == 0) continue;
    steps_a.push_back(a.step(j));
    steps_b.push_back(b.step(j));
  }
  return kendall_tau(steps_a, steps_b);
}

}  // namespace

void ConfidenceChange::add(double a, double b) {
  ++candidates;
  sum_a += a;
  sum_b += b;
  absolute += std::abs(b - a);
  largest = std::max(largest, std::abs(b - a));
}

void ConfidenceChange::add(const ConfidenceChange& other) {
  candidates += other.candidates;
  sum_a += other.sum_a;
  sum_b += other.sum_b;
  absolute += other.absolute;
  largest = std::max(largest, other.largest);
}

SamplePair compare_samples(const Trajectory& a, const Trajectory& b, std::optional<std::int32_t> mask_id) {
  if (a.positions() != b.positions())
    throw Error("{} has {} positions and {} has {}; runs with the same --gen-len can be compared", a.file(),
                a.positions(), b.file(), b.positions());
  SamplePair pair;
  pair.steps_a = a.steps();
  pair.steps_b = b.steps();
  compare_outputs(a, b, pair);
  pair.effect_a = a.effect();
  pair.effect_b = b.effect();
  if (!mask_id) return pair;
  const bool confidences = a.has_confidence() && b.has_confidence();
  if (confidences) pair.all_steps.emplace(), pair.before_parting.emplace();
  if (confidences && b.has_masked_keys()) pair.keys_masked.emplace();
  UnmaskingOrder order_a(a, *mask_id), order_b(b, *mask_id);
  for (std::size_t t = 0; t <= std::max(a.steps(), b.steps()); ++t) {
    order_a.add_state(t);
    order_b.add_state(t);
    if (!pair.parts_at && !std::ranges::equal(a.state(t), b.state(t))) pair.parts_at = t;
    if (confidences && t < std::min(a.steps(), b.steps())) compare_confidences(a, b, t, pair);
  }
  pair.kendall_tau = tau_of(a, order_a, order_b);
  return pair;
}

}  // namespace sinkscope
