#include "ops/parallel.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace sinkscope {
namespace {

// As many threads as the test says, whatever was set before.
class ParallelFor : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override { set_thread_count(GetParam()); }
  void TearDown() override { set_thread_count(0); }
};
INSTANTIATE_TEST_SUITE_P(Threads, ParallelFor, ::testing::Values(1, 2, 7));

TEST_P(ParallelFor, DoesEveryPieceOnce) {
  for (const std::int64_t count : {0, 1, 2, 1000}) {
    std::vector<std::atomic<int>> done(static_cast<std::size_t>(count));
    for (int round = 0; round < 50; ++round)
      parallel_for(count, [&](std::int64_t i) { ++done[static_cast<std::size_t>(i)]; });
    for (const std::atomic<int>& times : done) EXPECT_EQ(times, 50);
  }
}

TEST_P(ParallelFor, ThrowsWhatTheLowestPieceThrew) {
  for (int round = 0; round < 20; ++round) {
    try {
      parallel_for(100, [](std::int64_t i) {
        if (i >= 17) throw std::runtime_error(std::to_string(i));
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "17");
    }
  }
}

TEST_P(ParallelFor, LibrariesSeeOneThreadInside) {
  omp_set_num_threads(5);
  parallel_for(20, [](std::int64_t) { EXPECT_EQ(omp_get_max_threads(), 1); });
  EXPECT_EQ(omp_get_max_threads(), 5);
}

TEST_P(ParallelFor, InsideABodyTheSameThreadDoesAll) {
  parallel_for(4, [](std::int64_t) {
    const std::thread::id self = std::this_thread::get_id();
    parallel_for(10, [&](std::int64_t) { EXPECT_EQ(std::this_thread::get_id(), self); });
  });
}

TEST_P(ParallelFor, SeveralThreadsMayCallAtOnce) {
  std::atomic<int> sum{0};
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 4; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) parallel_for(8, [&](std::int64_t) { ++sum; });
    });
  callers.clear();
  EXPECT_EQ(sum, 4 * 50 * 8);
}

TEST(ParallelRows, CutsRowsIntoRangesOfTheGrain) {
  std::atomic<std::int64_t> rows{0};
  parallel_rows(10, 4, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_LE(end - begin, 4);
    EXPECT_EQ(begin % 4, 0);
    rows += end - begin;
  });
  EXPECT_EQ(rows, 10);
}

}  // namespace
}  // namespace sinkscope
