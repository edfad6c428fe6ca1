#include "measure/sweep.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <random>

namespace sinkscope {
namespace {

using ::testing::Contains;

std::uint64_t count_above(const std::vector<double>& margins, double threshold) {
  return static_cast<std::uint64_t>(
      std::count_if(margins.begin(), margins.end(), [&](double margin) { return margin > threshold; }));
}

TEST(MarginCounts, AreExactOnTheGridAndAtWhatIsFound) {
  for (const DetectionOptions& options :
       {DetectionOptions{}, DetectionOptions{.scale = SinkScale::mean},
        DetectionOptions{.scale = SinkScale::percent}, default_detection(SinkRule::visible)}) {
    const std::vector<double> grid = sweep_grid(options);
    std::mt19937 random(3);
    std::lognormal_distribution<double> sizes(0, 3);
    std::vector<double> margins{-1, 0, -std::numeric_limits<double>::infinity(), 1e300, grid[7]};
    margins.push_back(std::nextafter(grid[7], 1e9));
    for (int i = 0; i < 20000; ++i) margins.push_back(sizes(random) - 0.5);
    MarginCounts counts(grid);
    for (const double margin : margins) counts.add(margin);
    const std::vector<std::uint64_t> above = counts.above_grid();
    for (std::size_t i = 0; i < grid.size(); ++i)
      EXPECT_EQ(above[i], count_above(margins, grid[i])) << grid[i];
    std::sort(margins.rbegin(), margins.rend());
    for (const std::uint64_t wanted : {1, 10, 800, 5000}) {
      const MarginCounts::Found found = counts.find(wanted);
      EXPECT_LE(found.above, wanted);
      EXPECT_EQ(found.above, count_above(margins, found.threshold));
      const double exact = margins[wanted];  // from this value on at most `wanted` exceed it
      EXPECT_GE(found.threshold, exact);
      EXPECT_LE(found.threshold, exact * (1 + 1.0 / 2048)) << wanted;
    }
  }
}

TEST(MarginCounts, FindZeroWhereFewEnoughAreSinksAtAnyThreshold) {
  MarginCounts counts(sweep_grid({}));
  for (const double margin : {-3.0, 0.0, 2.0}) counts.add(margin);
  EXPECT_EQ(counts.find(5).threshold, 0);
  EXPECT_EQ(counts.find(5).above, 1U);
}

TEST(SweepGrid, HoldsTheDefaultsOfTheRules) {
  for (const SinkRule rule : {SinkRule::paper, SinkRule::visible, SinkRule::zscore, SinkRule::soft}) {
    const DetectionOptions options = default_detection(rule);
    EXPECT_THAT(sweep_grid(options), Contains(*threshold_name(rule) == "z" ? options.z : options.epsilon));
  }
  EXPECT_TRUE(sweep_grid(default_detection(SinkRule::topk)).empty());
}

}  // namespace
}  // namespace sinkscope
