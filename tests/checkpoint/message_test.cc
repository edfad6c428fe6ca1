#include "checkpoint/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(MessageTest, HostileTextBecomesOneShortLine) {
  EXPECT_EQ(in_quotes("a\nb\x01"), R"("a\nb\u0001")");
  EXPECT_EQ(in_quotes("\xFF"), "\"\xEF\xBF\xBD\"");
  const std::string text = in_quotes(std::string(1'000'000, 'x'));
  EXPECT_LT(text.size(), 120u);
  EXPECT_THAT(text, testing::EndsWith("..."));
}

TEST(MessageTest, CutsBetweenCharacters) {
  std::string text(99, 'x');
  text += "\u00e9 and more";  // two bytes, across the cut
  EXPECT_EQ(in_quotes(text), "\"" + std::string(99, 'x') + "\"...");
}

TEST(MessageTest, ContinuationBytesAloneAreCutToNothing) {
  EXPECT_EQ(in_quotes(std::string(200, '\x80')), "\"\"...");
}

TEST(MessageTest, ContainersAreNamedByTheirType) {
  EXPECT_EQ(shown(Json::parse("[1, 2]")), "an array");
  EXPECT_EQ(shown(Json(1.5)), "1.5");
  EXPECT_EQ(shown(Json("x")), "\"x\"");
}

TEST(MessageTest, ListsTenNamesAndCountsTheRest) {
  EXPECT_EQ(listed(std::vector<std::string>{"a", "b"}), "a, b");
  EXPECT_EQ(listed(std::vector<std::string>(13, "x")), "x, x, x, x, x, x, x, x, x, x and 3 more");
}

}  // namespace
}  // namespace sinkscope
