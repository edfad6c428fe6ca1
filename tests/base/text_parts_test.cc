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

TEST(Utf8Prefix, HalvesNoSequence) {
  EXPECT_EQ(utf8_prefix("abc", 3), "abc");
  EXPECT_EQ(utf8_prefix("abc", 2), "ab");
  EXPECT_EQ(utf8_prefix("a\xE2\x82\xAC", 3), "a");  // a and the euro sign
  EXPECT_EQ(utf8_prefix("a\xE2\x82\xAC", 4), "a\xE2\x82\xAC");
  EXPECT_EQ(utf8_prefix("\x82\x82\x82", 2), "");
}

TEST(FileName, IsNoPathNotHiddenAndOnOneLine) {
  for (const char* name : {"plain", "last-1-random", "a b", "\xE2\x82\xAC"})
    EXPECT_TRUE(is_file_name(name)) << name;
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "/a", "a\nb"})
    EXPECT_FALSE(is_file_name(name)) << name;
  EXPECT_TRUE(is_file_name(std::string(200, 'n')));
  EXPECT_FALSE(is_file_name(std::string(201, 'n')));
  EXPECT_FALSE(is_file_name(std::string_view("a\0b", 3)));
}

}  // namespace
}  // namespace sinkscope
