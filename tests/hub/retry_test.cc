#include "hub/retry.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(Retry, OnlyWhatMayPassIsTriedAgain) {
  for (const long status : {408, 429, 500, 502, 503, 504, 599}) EXPECT_TRUE(is_temporary(status)) << status;
  for (const long status : {200, 400, 401, 403, 404, 416, 501, 505})
    EXPECT_FALSE(is_temporary(status)) << status;
}

TEST(Retry, WaitsDoubleUpToABound) {
  const RetryRule rule{.retries = 9, .first_wait = 1};
  EXPECT_EQ(wait_before_retry(rule, 1, {}, 1), 1);
  EXPECT_EQ(wait_before_retry(rule, 2, {}, 1), 2);
  EXPECT_EQ(wait_before_retry(rule, 4, {}, 1), 8);
  EXPECT_EQ(wait_before_retry(rule, 4, {}, 0), 4);
  EXPECT_EQ(wait_before_retry(rule, 1000, {}, 1), longest_backoff);
  EXPECT_EQ(wait_before_retry({.retries = 9, .first_wait = 0}, 5, {}, 1), 0);
}

TEST(Retry, AServerMayAskForALongerWaitWithinReason) {
  const RetryRule rule{.retries = 9, .first_wait = 1};
  EXPECT_EQ(wait_before_retry(rule, 1, 20, 1), 20);
  EXPECT_EQ(wait_before_retry(rule, 4, 2, 1), 8);
  EXPECT_EQ(wait_before_retry(rule, 1, 1'000'000, 1), longest_asked_wait);
  EXPECT_EQ(wait_before_retry(rule, 1, -5, 1), 1);
}

TEST(Retry, FailuresInARowEndWithNewBytes) {
  FailureCount count(1000);
  EXPECT_EQ(count.add(1000), 1);
  EXPECT_EQ(count.add(2000), 2);
  EXPECT_EQ(count.add(1000 + FailureCount::step), 1);
  // A server that always cuts at the same place does not get on.
  EXPECT_EQ(count.add(0), 2);
  EXPECT_EQ(count.add(1000 + FailureCount::step), 3);
}

}  // namespace
}  // namespace sinkscope
