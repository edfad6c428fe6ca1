#include "base/text_parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TextParts, LinesEndInEitherWay) {
  EXPECT_THAT(lines_of("a\nb\r\n\nc"), ElementsAre("a", "b", "", "c"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(TextParts, BlankIsNothingButSpace) {
  EXPECT_TRUE(is_blank(" \t\r"));
  EXPECT_TRUE(is_blank(""));
  EXPECT_FALSE(is_blank(" x"));
}

TEST(TextParts, CommasSetEntriesApart) {
  EXPECT_THAT(comma_parts("a,,b"), ElementsAre("a", "", "b"));
  EXPECT_THAT(comma_parts("a,"), ElementsAre("a", ""));
  EXPECT_THAT(comma_parts(""), ElementsAre(""));
}

}  // namespace
}  // namespace sinkscope
