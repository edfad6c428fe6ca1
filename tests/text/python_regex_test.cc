#include "text/python_regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every expected value is what Python 3.11's re gives.
TEST(PythonRegex, FindsAllMatchesAsFindallDoes) {
  EXPECT_THAT(PythonRegex("[0-9]+", "t").find_all("a1b22"), ElementsAre(ElementsAre("1"), ElementsAre("22")));
  EXPECT_THAT(PythonRegex("x", "t").find_all("abc"), IsEmpty());
  EXPECT_THAT(PythonRegex("#### (\\-?[0-9\\.\\,]+)", "t").find_all("so #### 1,234. and #### -5"),
              ElementsAre(ElementsAre("1,234."), ElementsAre("-5")));
}

TEST(PythonRegex, GroupsThatTakeNoPartAreEmpty) {
  EXPECT_THAT(PythonRegex("(-?[$0-9.,]{2,})|(-?[0-9]+)", "t").find_all("7 of $12."),
              ElementsAre(ElementsAre("", "7"), ElementsAre("$12.", "")));
}

TEST(PythonRegex, EmptyMatchesMayFollowOthers) {
  EXPECT_THAT(PythonRegex("x*", "t").find_all("axb"),
              ElementsAre(ElementsAre(""), ElementsAre("x"), ElementsAre(""), ElementsAre("")));
  EXPECT_EQ(PythonRegex("x*", "t").replace_all("abxd", "-"), "-a-b--d-");
}

TEST(PythonRegex, ReplacesAsSubDoes) {
  EXPECT_EQ(PythonRegex(",", "t").replace_all("1,234,567", ""), "1234567");
  EXPECT_EQ(PythonRegex("(?s).*#### ", "t").replace_all("one\n#### two\n#### 3", ""), "3");
  EXPECT_EQ(PythonRegex("\\.$", "t").replace_all("18.", ""), "18");
  EXPECT_EQ(PythonRegex("\\.$", "t").replace_all("18.\n", ""), "18\n");
  EXPECT_EQ(PythonRegex("\\.\\Z", "t").replace_all("18.\n", ""), "18.\n");
  EXPECT_EQ(PythonRegex("(?<=\\d)\\.0+(?!\\d)", "t").replace_all("18.00", ""), "18");
}

TEST(PythonRegex, TakesTextsThatAreNotUtf8) {
  EXPECT_THAT(PythonRegex("b", "t").find_all("a\xff"
                                             "b"),
              ElementsAre(ElementsAre("b")));
}

TEST(PythonRegex, NamesThePatternThatDoesNotCompile) {
  try {
    PythonRegex("(", "task.json: filters[0].regex");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("task.json: filters[0].regex: the regular expression \"(\" does not compile"));
  }
}

TEST(PythonRegex, EndsWhereTheSearchWouldNot) {
  EXPECT_THROW(PythonRegex("(?:a*)*(?:a*)*b\\1?()", "t").find_all(std::string(200, 'a') + "c"), Error);
}

}  // namespace
}  // namespace sinkscope
