// gnuplot as a program that may be missing or fail.
#include "draw/gnuplot.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <stdlib.h>

#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::AllOf;
using testing::content_of;
using ::testing::HasSubstr;
using testing::TemporaryFolder;

std::string message_of(const std::string& script) {
  try {
    run_gnuplot(script, "picture.png");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Gnuplot, DrawsWhatTheScriptSays) {
  const TemporaryFolder folder;
  const std::string picture = folder / "it's one.png";
  run_gnuplot("set terminal pngcairo size 80,60\nset output " + gnuplot_quoted(picture) + "\nplot x\n",
              picture);
  const std::string png = content_of(picture);
  ASSERT_THAT(png, ::testing::StartsWith("\x89PNG"));
  EXPECT_EQ(static_cast<unsigned char>(png[19]), 80);  // width and height, big-endian, in the first chunk
  EXPECT_EQ(static_cast<unsigned char>(png[23]), 60);
}

TEST(Gnuplot, NothingInAQuotedTextIsInterpreted) {
  const TemporaryFolder folder;
  for (const std::string text : {"it's", "'; !touch hacked; '", "`touch hacked`", "\\\"; !touch hacked",
                                 "@GPFUN_x", "a{b", "}", "#c", "$x %d", "a\nb"}) {
    const std::string said = folder / "said";
    run_gnuplot("set print " + gnuplot_quoted(said) + "\nprint " + gnuplot_quoted(text) + "\n", "nothing");
    EXPECT_EQ(content_of(said), (text == "a\nb" ? "a b" : text) + "\n");
  }
  EXPECT_FALSE(std::filesystem::exists("hacked"));
}

TEST(Gnuplot, AMistakeInAScriptIsSaid) {
  EXPECT_THAT(message_of("set terminal nothing-of-the-kind\n"),
              AllOf(HasSubstr("gnuplot did not draw picture.png"), HasSubstr("terminal")));
}

TEST(Gnuplot, ALongScriptAndALongComplaintDoNotBlock) {
  const std::string comment(1 << 20, '#');
  EXPECT_EQ(message_of(comment + "\nset terminal pngcairo\n"), "");
  std::string complaints;
  for (int i = 0; i < 5000; ++i)
    complaints += "set print '-'\nprint 'all is well'\nset print\nprint 'on stderr'\n";
  EXPECT_THAT(message_of(complaints + "plot nothing_of_the_kind\n"), HasSubstr("did not draw"));
}

TEST(Gnuplot, WithoutItTheMessageNamesThePackage) {
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", "/nowhere", 1);
  const std::string message = message_of("plot x\n");
  ::setenv("PATH", path.c_str(), 1);
  EXPECT_THAT(message, AllOf(HasSubstr("gnuplot is not installed"), HasSubstr("gnuplot-nox")));
}

}  // namespace
}  // namespace sinkscope
