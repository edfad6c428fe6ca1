#include "measure/statistics.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "base/random_bits.h"

namespace sinkscope {
namespace {

// Of sorted values, linear between the two neighbours.
double quantile(std::span<const double> sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::uint64_t pairs_of(std::uint64_t count) {
  return count % 2 == 0 ? count / 2 * (count - 1) : (count - 1) / 2 * count;
}

// Pairs within runs of equal neighbours.
template <typename Values, typename Equal>
std::uint64_t tied_pairs(const Values& values, Equal equal) {
  std::uint64_t tied = 0;
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin + 1;
    while (end < values.size() && equal(values[begin], values[end])) ++end;
    tied += pairs_of(end - begin);
    begin = end;
  }
  return tied;
}

// Pairs out of order, counted by the merges of a merge sort; `values` come back sorted.
std::uint64_t sort_and_count_inversions(std::span<std::int64_t> values, std::vector<std::int64_t>& room) {
  if (values.size() < 2) return 0;
  const std::size_t half = values.size() / 2;
  const std::span<std::int64_t> left = values.first(half), right = values.subspan(half);
  std::uint64_t inversions = sort_and_count_inversions(left, room) + sort_and_count_inversions(right, room);
  room.clear();
  std::size_t l = 0, r = 0;
  while (l < left.size() && r < right.size()) {
    if (right[r] < left[l]) {
      inversions += left.size() - l;
      room.push_back(right[r++]);
    } else {
      room.push_back(left[l++]);
    }
  }
  room.insert(room.end(), left.begin() + static_cast<std::ptrdiff_t>(l), left.end());
  std::copy(room.begin(), room.end(), values.begin());  // what is left of `right` is in its place
  return inversions;
}

}  // namespace

std::optional<double> binomial_standard_error(std::uint64_t successes, std::uint64_t trials) {
  if (successes > trials) throw Error("{} successes of {} trials are too many", successes, trials);
  if (trials < 2) return std::nullopt;
  const double share = static_cast<double>(successes) / static_cast<double>(trials);
  return std::sqrt(share * (1 - share) / static_cast<double>(trials - 1));
}

double mcnemar_p(std::uint64_t only_first, std::uint64_t only_second) {
  const std::uint64_t least = std::min(only_first, only_second);
  if (only_first == only_second) return 1;
  const auto n = static_cast<long double>(only_first) + static_cast<long double>(only_second);
  const auto k = static_cast<long double>(least);
  // C(n,k) / 2^n as a logarithm, then the terms below it, each k / (n - k + 1) of the one before, until they
  // add nothing.
  const long double largest =
      std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) - n * std::numbers::ln2_v<long double>;
  long double sum = 0, term = 1;
  for (long double i = k; i >= 0 && sum + term > sum; --i) {
    sum += term;
    term *= i / (n - i + 1);
  }
  return static_cast<double>(std::min(1.0L, 2 * std::exp(largest + std::log(sum))));
}

void validate_resamples(std::int64_t resamples) {
  if (resamples < 1 || resamples > most_resamples)
    throw UsageError("--resamples is {}; 1 to {} is right", resamples, most_resamples);
}

std::optional<Interval> paired_bootstrap(std::span<const double> first, std::span<const double> second,
                                         std::size_t resamples, std::uint64_t seed) {
  if (first.size() != second.size())
    throw Error("{} scores cannot be paired with {}", first.size(), second.size());
  if (resamples == 0) throw Error("a bootstrap needs at least one resample");
  if (first.empty()) return std::nullopt;
  const std::size_t count = first.size();
  std::vector<double> means;
  means.reserve(resamples);
  for (std::size_t r = 0; r < resamples; ++r) {
    const RandomPlaces draws(seed, "bootstrap", r);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t drawn = draws.below(i, count);
      sum += second[drawn] - first[drawn];
    }
    means.push_back(sum / static_cast<double>(count));
  }
  std::sort(means.begin(), means.end());
  return Interval{quantile(means, 0.025), quantile(means, 0.975)};
}

std::optional<double> kendall_tau(std::span<const std::int64_t> a, std::span<const std::int64_t> b) {
  if (a.size() != b.size()) throw Error("{} ranks cannot be compared with {}", a.size(), b.size());
  std::vector<std::pair<std::int64_t, std::int64_t>> things;
  things.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) things.emplace_back(a[i], b[i]);
  std::sort(things.begin(), things.end());
  const auto same_first = [](const auto& x, const auto& y) { return x.first == y.first; };
  const std::uint64_t all = pairs_of(things.size());
  const std::uint64_t tied_in_a = tied_pairs(things, same_first);
  const std::uint64_t tied_in_both = tied_pairs(things, std::equal_to<>());
  std::vector<std::int64_t> ranks, room;
  ranks.reserve(things.size());
  room.reserve(things.size());
  for (const auto& thing : things) ranks.push_back(thing.second);
  // Ties in a are in b's order: their pairs are no inversions.
  const std::uint64_t discordant = sort_and_count_inversions(ranks, room);
  const std::uint64_t tied_in_b = tied_pairs(ranks, std::equal_to<>());
  if (tied_in_a == all || tied_in_b == all) return std::nullopt;
  const std::uint64_t untied = all - tied_in_a - tied_in_b + tied_in_both;
  const double difference = static_cast<double>(untied - discordant) - static_cast<double>(discordant);
  return difference / std::sqrt(static_cast<double>(all - tied_in_a) * static_cast<double>(all - tied_in_b));
}

}  // namespace sinkscope
