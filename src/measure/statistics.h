// Statistics of scores and orders: what tells whether a difference between two runs means anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace sinkscope {

/// Of a bootstrap; more would take minutes and say nothing new.
inline constexpr std::int64_t most_resamples = 10'000'000;
/// Throws UsageError naming --resamples unless it is 1 to most_resamples.
void validate_resamples(std::int64_t resamples);

/// Standard error of a share of successes, sqrt(p (1 - p) / (n - 1)); none for fewer than two trials. Throws
/// Error where there are more successes than trials.
std::optional<double> binomial_standard_error(std::uint64_t successes, std::uint64_t trials);

/// McNemar's exact two-sided test for paired 0/1 scores, of which `only_first` pairs were right in the first
/// run alone and `only_second` in the second alone: how likely a split at least as uneven is where both are
/// equally likely, min(1, 2 P(X <= min)) with X ~ Binomial(only_first + only_second, 1/2). 1 where no pair
/// differs. Counts may be as large as memory addresses: work grows with the square root of their sum.
double mcnemar_p(std::uint64_t only_first, std::uint64_t only_second);

struct Interval {
  double low = 0;
  double high = 0;
};

/// Percentile bootstrap of the mean of second[i] - first[i]: pairs are drawn with replacement `resamples`
/// times, and the interval goes from the 2.5 to the 97.5 % quantile of the means (linear between two of them,
/// as NumPy's default). Equal arguments give equal bits. None without a pair. Throws Error where the lengths
/// differ or resamples is 0.
std::optional<Interval> paired_bootstrap(std::span<const double> first, std::span<const double> second,
                                         std::size_t resamples, std::uint64_t seed);

/// Kendall's tau-b of two rankings of the same things, ties allowed, in O(n log n) (Knight 1966):
/// (concordant - discordant pairs) / sqrt((pairs untied in a) (pairs untied in b)). None where one ranking
/// ties everything, fewer than two things included. Throws Error where the lengths differ.
std::optional<double> kendall_tau(std::span<const std::int64_t> a, std::span<const std::int64_t> b);

}  // namespace sinkscope
