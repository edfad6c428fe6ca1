#include "measure/statistics.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "record/python.h"

namespace sinkscope {
namespace {

TEST(BinomialStandardError, IsThatOfTheSpec) {
  EXPECT_DOUBLE_EQ(*binomial_standard_error(3, 5), std::sqrt(0.6 * 0.4 / 4));
  // The square root of the unbiased variance of the 0/1 scores over n.
  EXPECT_DOUBLE_EQ(*binomial_standard_error(1, 2), 0.5);
  EXPECT_EQ(*binomial_standard_error(7, 7), 0);
  EXPECT_EQ(*binomial_standard_error(0, 7), 0);
  EXPECT_FALSE(binomial_standard_error(1, 1));
  EXPECT_FALSE(binomial_standard_error(0, 0));
  EXPECT_THROW(binomial_standard_error(3, 2), Error);
}

// Pascal's triangle, by rows that halve: P(X = k), X ~ Binomial(n, 1/2).
std::vector<double> fair_coins(int n) {
  std::vector<double> row{1};
  for (int i = 0; i < n; ++i) {
    std::vector<double> next(row.size() + 1, 0);
    for (std::size_t k = 0; k < row.size(); ++k) {
      next[k] += row[k] / 2;
      next[k + 1] += row[k] / 2;
    }
    row = next;
  }
  return row;
}

TEST(McNemar, ClosedForms) {
  EXPECT_EQ(mcnemar_p(0, 0), 1);
  EXPECT_EQ(mcnemar_p(4, 4), 1);
  EXPECT_NEAR(mcnemar_p(0, 1), 1, 1e-15);
  EXPECT_NEAR(mcnemar_p(0, 6), 2.0 / 64, 1e-15);
  EXPECT_NEAR(mcnemar_p(9, 1), 2.0 * 11 / 1024, 1e-15);
}

TEST(McNemar, EqualsTheSumOfBinomialProbabilities) {
  for (const int n : {1, 2, 7, 40, 301}) {
    const std::vector<double> probabilities = fair_coins(n);
    for (int b = 0; b <= n; ++b) {
      const int least = std::min(b, n - b);
      const double tail = std::accumulate(probabilities.begin(), probabilities.begin() + least + 1, 0.0);
      EXPECT_NEAR(mcnemar_p(b, n - b) / std::min(1.0, 2 * tail), 1, 1e-12) << b << " of " << n;
      EXPECT_EQ(mcnemar_p(b, n - b), mcnemar_p(n - b, b));
    }
  }
}

TEST(McNemar, LargeCountsNeitherOverflowNorVanish) {
  // P(X <= (n - d) / 2) of the normal distribution, corrected for continuity; its error is of order 1/n here.
  for (const auto& [n, d] : {std::pair(1e6, 2e3), {1e9, 2e5}, {1e12, 4e6}}) {
    const double p =
        mcnemar_p(static_cast<std::uint64_t>((n - d) / 2), static_cast<std::uint64_t>((n + d) / 2));
    const double normal = std::erfc((d - 1) / std::sqrt(2 * n));
    EXPECT_NEAR(p / normal, 1, 1e-4) << n;
  }
  EXPECT_EQ(mcnemar_p(0, 100000), 0);  // 2^-99999
  EXPECT_NEAR(mcnemar_p(0, 1000) / std::ldexp(1.0, -999), 1, 1e-12);
}

TEST(PairedBootstrap, OfASpreadlessDifferenceIsThatDifference) {
  const std::vector<double> first{1, 2, 5}, second{1.5, 2.5, 5.5};
  const Interval interval = *paired_bootstrap(first, second, 100, 7);
  EXPECT_EQ(interval.low, 0.5);
  EXPECT_EQ(interval.high, 0.5);
}

TEST(PairedBootstrap, OfTwoPairsReachesBoth) {
  // Means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4.
  const std::vector<double> first{0, 0}, second{0, 1};
  const Interval interval = *paired_bootstrap(first, second, 1000, 7);
  EXPECT_EQ(interval.low, 0);
  EXPECT_EQ(interval.high, 1);
}

// 800 pairs whose differences are 0.25 + a normal deviate.
std::pair<std::vector<double>, std::vector<double>> noisy_pairs() {
  std::mt19937 random(5);
  std::normal_distribution<double> noise;
  std::pair<std::vector<double>, std::vector<double>> pairs;
  for (int i = 0; i < 800; ++i) {
    pairs.first.push_back(10 * noise(random));
    pairs.second.push_back(pairs.first.back() + 0.25 + noise(random));
  }
  return pairs;
}

TEST(PairedBootstrap, OfManyPairsIsNearlyNormal) {
  const auto [first, second] = noisy_pairs();
  const auto n = static_cast<double>(first.size());
  double sum = 0, squares = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    sum += second[i] - first[i];
    squares += (second[i] - first[i]) * (second[i] - first[i]);
  }
  const double mean = sum / n, error = std::sqrt((squares / n - mean * mean) / n);
  const Interval interval = *paired_bootstrap(first, second, 20000, 7);
  // A 2.5 % quantile of 20000 draws is uncertain by sqrt(0.025 * 0.975 / 20000) / density(1.96) = 0.019
  // errors; five times that, and a little for the distribution's skew.
  EXPECT_NEAR(interval.low, mean - 1.96 * error, 0.12 * error);
  EXPECT_NEAR(interval.high, mean + 1.96 * error, 0.12 * error);
}

TEST(PairedBootstrap, IsReproducibleAndDependsOnSeedAndResamples) {
  const auto [first, second] = noisy_pairs();
  const auto low = [&, &a = first, &b = second](std::size_t resamples, std::uint64_t seed) {
    return paired_bootstrap(a, b, resamples, seed)->low;
  };
  EXPECT_EQ(low(500, 7), low(500, 7));
  EXPECT_NE(low(500, 7), low(500, 8));
  EXPECT_NE(low(500, 7), low(501, 7));
}

TEST(PairedBootstrap, AgreesWithNumPy) {
  REQUIRE_NUMPY(python);
  const auto [first, second] = noisy_pairs();
  const testing::TemporaryFolder folder;
  std::string values;
  for (std::size_t i = 0; i < first.size(); ++i) values += fmt::format("{:.17g},", second[i] - first[i]);
  const auto judged =
      test::run_python(*python, folder,
                       "d = np.array([" + values +
                           "])\n"
                           "r = np.random.default_rng(1)\n"
                           "m = [r.choice(d, len(d)).mean() for _ in range(20000)]\n"
                           "print(*np.quantile(m, [0.025, 0.975]), d.std() / len(d) ** 0.5)\n");
  ASSERT_EQ(judged.status, 0) << judged.output;
  double low = 0, high = 0, error = 0;
  ASSERT_EQ(std::sscanf(judged.output.c_str(), "%lf %lf %lf", &low, &high, &error), 3) << judged.output;
  const Interval interval = *paired_bootstrap(first, second, 20000, 7);
  EXPECT_NEAR(interval.low, low, 0.14 * error);  // five times sqrt(2) * 0.019
  EXPECT_NEAR(interval.high, high, 0.14 * error);
}

TEST(PairedBootstrap, Refusals) {
  const std::vector<double> one{1}, two{1, 2};
  EXPECT_FALSE(paired_bootstrap({}, {}, 10, 1));
  EXPECT_THROW(paired_bootstrap(one, two, 10, 1), Error);
  EXPECT_THROW(paired_bootstrap(one, one, 0, 1), Error);
}

// By the definition, over all pairs.
std::optional<double> plain_tau(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  double agreement = 0, untied_a = 0, untied_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      const int x = (a[i] > a[j]) - (a[i] < a[j]), y = (b[i] > b[j]) - (b[i] < b[j]);
      agreement += x * y;
      untied_a += x * x;
      untied_b += y * y;
    }
  if (untied_a == 0 || untied_b == 0) return std::nullopt;
  return agreement / std::sqrt(untied_a * untied_b);
}

TEST(KendallTau, ClosedForms) {
  const std::vector<std::int64_t> up{1, 2, 3, 4}, down{9, 7, 5, -3}, tied{1, 1, 2, 2}, flat{3, 3, 3, 3};
  EXPECT_EQ(kendall_tau(up, up), 1);
  EXPECT_EQ(kendall_tau(up, down), -1);
  EXPECT_EQ(kendall_tau(tied, tied), 1);
  EXPECT_DOUBLE_EQ(*kendall_tau(up, tied), 4 / std::sqrt(6.0 * 4));
  EXPECT_EQ(kendall_tau(std::vector<std::int64_t>{1, 2, 3}, std::vector<std::int64_t>{1, 3, 2}), 1.0 / 3);
  EXPECT_FALSE(kendall_tau(up, flat));
  EXPECT_FALSE(kendall_tau({}, {}));
  EXPECT_FALSE(kendall_tau(std::vector<std::int64_t>{1}, std::vector<std::int64_t>{1}));
  EXPECT_THROW(kendall_tau(up, std::vector<std::int64_t>{1}), Error);
}

TEST(KendallTau, EqualsTheDefinition) {
  std::mt19937 random(11);
  int defined = 0;
  for (int round = 0; round < 300; ++round) {
    const std::size_t count = random() % 40;
    const int ranks = 1 + static_cast<int>(random() % 30);  // few ranks, many ties
    std::vector<std::int64_t> a, b;
    for (std::size_t i = 0; i < count; ++i) {
      a.push_back(random() % ranks);
      b.push_back(random() % 3 == 0 ? a.back() : static_cast<std::int64_t>(random() % ranks));
    }
    const std::optional<double> tau = kendall_tau(a, b), plain = plain_tau(a, b);
    ASSERT_EQ(tau.has_value(), plain.has_value());
    if (!tau) continue;
    EXPECT_NEAR(*tau, *plain, 1e-14);
    ++defined;
  }
  EXPECT_GT(defined, 200);
}

TEST(KendallTau, OfManyThingsTakesNoSquareOfTheirNumber) {
  std::vector<std::int64_t> a(1000000), b;  // 5e11 pairs
  std::iota(a.begin(), a.end(), 0);
  b = a;
  std::swap(b.front(), b.back());  // turns 2 n - 3 pairs round
  const double pairs = 1e6 * (1e6 - 1) / 2;
  EXPECT_NEAR(*kendall_tau(a, b), 1 - 2 * (2e6 - 3) / pairs, 1e-15);
}

}  // namespace
}  // namespace sinkscope
