#include "hub/content_range.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(ContentRange, TheThreeNumbersAreRead) {
  const auto range = parse_content_range("bytes 5-9/10");
  ASSERT_TRUE(range);
  EXPECT_EQ(range->first, 5U);
  EXPECT_EQ(range->last, 9U);
  EXPECT_EQ(range->total, 10U);
  EXPECT_FALSE(parse_content_range("bytes 5-9/*")->total);
}

TEST(ContentRange, AnythingElseIsNone) {
  for (const char* text :
       {"", "bytes", "bytes */10", "5-9/10", "bytes 9-5/10", "bytes 5-9/9", "bytes 5-9", "bytes 5-/10",
        "bytes -5-9/10", "bytes 5-9/10x", "bytes 99999999999999999999-9/10", "items 5-9/10"})
    EXPECT_FALSE(parse_content_range(text)) << text;
}

}  // namespace
}  // namespace sinkscope
