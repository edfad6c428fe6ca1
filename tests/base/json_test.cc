#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_in(std::string_view text) {
  try {
    parse_json(text, "f.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error)";
}

TEST(JsonTest, ErrorsNameThePlace) {
  EXPECT_THAT(error_in("{\"a\": }"), AllOf(HasSubstr("f.json is not valid JSON"), HasSubstr("column 7")));
  EXPECT_THAT(error_in(""), HasSubstr("f.json"));
}

TEST(JsonTest, OneKeyTwiceInAnObjectIsRefused) {
  EXPECT_THAT(error_in(R"({"a": 1, "b": {"a": 2}, "a": 3})"), HasSubstr("the key \"a\" stands twice"));
  EXPECT_EQ(parse_json(R"({"a": 1, "b": {"a": 2}})", "f").at("b").at("a"), 2);
}

TEST(JsonTest, ZeroBytesDoNotHideWhatFollows) {
  EXPECT_THAT(error_in(std::string_view("{}\0{", 4)), HasSubstr("byte 2 is zero"));
}

TEST(JsonTest, DepthIsBounded) {
  const auto nested = [](std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_EQ(parse_json(nested(200), "f").size(), 1u);
  EXPECT_THAT(error_in(nested(300)), HasSubstr("deeper than 256"));
  EXPECT_THAT(error_in(std::string(1'000'000, '[')), HasSubstr("deeper than 256"));
}

TEST(JsonTest, MessagesStayShortWhateverTheyQuote) {
  EXPECT_LT(error_in("\"" + std::string(1'000'000, 'x')).size(), 400u);
  const std::string key = "\"" + std::string(1'000'000, 'k') + "\": 1";
  EXPECT_LT(error_in("{" + key + ", " + key + "}").size(), 400u);
}

TEST(JsonTest, MessagesSayWhereAndNotWhichOfTheLibrarysErrorsItIs) {
  EXPECT_THAT(error_in("{\"a\":}"), ::testing::StartsWith("f.json is not valid JSON (at column 6: "));
  EXPECT_THAT(error_in("{\n\"a\":}"),
              ::testing::StartsWith("f.json is not valid JSON (parse error at line 2, column 5: "));
  EXPECT_THAT(error_in("[1e999]"), ::testing::StartsWith("f.json is not valid JSON (number overflow"));
}

}  // namespace
}  // namespace sinkscope
