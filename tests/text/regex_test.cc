#include "text/regex.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <thread>

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> matches(const std::string& pattern, const std::string& text) {
  std::vector<MatchedSpan> spans;
  Regex(pattern, "FILE").find(text, 0, spans);
  std::vector<std::string> out;
  for (const MatchedSpan& part : spans)
    if (part.is_match) out.emplace_back(part.span.of(text));
  return out;
}

std::string compile_error(const std::string& pattern) {
  try {
    Regex(pattern, "FILE: pre_tokenizer");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Regex, CoversTheTextWithoutGaps) {
  std::vector<MatchedSpan> spans;
  Regex("l+", "FILE").find("hello wall", 100, spans);
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_FALSE(spans[0].is_match);
  EXPECT_TRUE(spans[1].is_match);
  EXPECT_EQ(spans[1].span.begin, 102u);
  EXPECT_EQ(spans[1].span.end, 104u);
  EXPECT_EQ(spans[3].span.end, 110u);
}

TEST(Regex, MovesOverEmptyMatches) { EXPECT_THAT(matches("x*", "axé"), ElementsAre("", "x", "")); }

TEST(Regex, TakesThePatternsOfTheFamilies) {
  const char* llada =
      R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)";
  EXPECT_THAT(matches(llada, "I'LL  go 12!\n"), ElementsAre("I", "'LL", " ", " go", " ", "1", "2", "!\n"));
  const char* gpt4o =
      R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t)?|\p{N}{1,3}|\s+)";
  EXPECT_THAT(matches(gpt4o, "It's 1234 日本"), ElementsAre("It's", " ", "123", "4", " 日本"));
}

TEST(Oniguruma, WhiteSpaceIsUnicodes) {
  EXPECT_THAT(matches(R"(\s)", "\u0085 \u3000"), ElementsAre("\u0085", " ", "\u3000"));
  EXPECT_THAT(matches(R"(\s|[\s]|[[:space:]])", "\u180E"), IsEmpty());
  EXPECT_THAT(matches(R"(\S|[\S])", "\u180E"), ElementsAre("\u180E"));
}

TEST(Oniguruma, WordsHoldMarksConnectorsAndOutsideBracketsLatinFractions) {
  EXPECT_THAT(matches(R"(\w+)", "e\u0301‿a ½ ①"), ElementsAre("e\u0301‿a", "½"));
  EXPECT_THAT(matches(R"([\w]+)", "a ½"), ElementsAre("a"));
  EXPECT_THAT(matches(R"(\bl)", "l al e\u0301l"), ElementsAre("l"));
}

TEST(Oniguruma, HIsAHexDigit) { EXPECT_THAT(matches(R"(\h+)", "xA9 \tg"), ElementsAre("A9")); }

TEST(Oniguruma, IntervalsAreNeverPossessiveNorFixedOnesLazy) {
  EXPECT_THAT(matches(R"(\p{N}{1,2}+)", "12345"), ElementsAre("12345"));
  EXPECT_THAT(matches(R"((?:ab){2}+)", "abababab"), ElementsAre("abababab"));
  EXPECT_THAT(matches(R"(xl{2}?o)", "xo xllo xlo"), ElementsAre("xo", "xllo"));
  EXPECT_THAT(matches(R"(l{,2}o)", "llo o"), ElementsAre("llo", "o"));
  EXPECT_THAT(matches(R"(l{1,2}?)", "ll"), ElementsAre("l", "l"));
  EXPECT_THAT(matches(R"(a{x})", "a{x}"), ElementsAre("a{x}"));
}

TEST(Oniguruma, AnOptionInMidGroupReachesOverTheAlternatives) {
  EXPECT_THAT(matches("h(?i)E|L", "hl HL he"), ElementsAre("hl", "he"));
}

TEST(Oniguruma, LinesAreAnchorsAndMIsForTheDot) {
  EXPECT_THAT(matches("^.", "ab\ncd"), ElementsAre("a", "c"));
  EXPECT_THAT(matches("(?m:b.c)", "ab\ncd"), ElementsAre("b\nc"));
  EXPECT_THAT(matches("b.c", "ab\ncd"), IsEmpty());
}

TEST(Oniguruma, PropertiesByTheirManyNames) {
  EXPECT_THAT(matches(R"(\p{Uppercase_Letter})", "aB"), ElementsAre("B"));
  EXPECT_THAT(matches(R"(\p{^L}+)", "a1 b"), ElementsAre("1 "));
  EXPECT_THAT(matches(R"(\p{Han}+)", "日本、か"), ElementsAre("日本"));
  EXPECT_THAT(matches(R"([[:punct:]])", "$a"), ElementsAre("$"));
  EXPECT_THAT(matches(R"(\p{Punct})", "$a!"), ElementsAre("!"));
  EXPECT_THAT(matches(R"(\u00e9|\x{1F98A})", "é🦊"), ElementsAre("é", "🦊"));
}

TEST(Oniguruma, RefusesByNameWhatItCannotSay) {
  EXPECT_THAT(compile_error("[a&&b]"), HasSubstr("class intersection"));
  EXPECT_THAT(compile_error("[a[b]]"), HasSubstr("class inside a class"));
  EXPECT_THAT(compile_error("(?x)a"), HasSubstr("option (?x)"));
  EXPECT_THAT(compile_error("(*FAIL)"), HasSubstr("callout"));
  EXPECT_THAT(compile_error("(?~a)"), HasSubstr("group \"(?~"));
  EXPECT_THAT(compile_error(R"(\Qa)"), HasSubstr(R"(escape \Q)"));
  EXPECT_THAT(compile_error(R"([\W])"), HasSubstr(R"(negated set \W)"));
  EXPECT_THAT(compile_error(R"([[:graph:]])"), HasSubstr("[:graph:]"));
  EXPECT_THAT(compile_error(R"(\pL)"), HasSubstr("property without braces"));
  EXPECT_THAT(compile_error("a\\"), HasSubstr("backslash at its end"));
  EXPECT_THAT(compile_error(std::string(70000, 'a')), HasSubstr("70000 bytes long"));
}

TEST(Regex, NamesThePatternThatDoesNotCompile) {
  EXPECT_THAT(compile_error("(a"),
              HasSubstr("FILE: pre_tokenizer: the regular expression \"(a\" does not compile"));
  EXPECT_THAT(compile_error("[a"), HasSubstr("does not compile"));
  EXPECT_THAT(compile_error(R"(\p{Klingon})"), HasSubstr("does not compile"));
}

TEST(Regex, EndlessBacktrackingIsAnError) {
  const std::string text = std::string(200, 'a') + "!";
  try {
    matches("(a+)+$", text);
    FAIL() << "should have given up";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("FILE: the regular expression backtracks without end on this text"));
  }
}

TEST(Regex, LongMatchesNeedNoLongStack) {
  const std::string text(1 << 20, 'a');
  EXPECT_THAT(matches("(?:a|b)+", text), ElementsAre(text));
}

TEST(Regex, MayBeUsedFromSeveralThreads) {
  const Regex regex("l+", "FILE");
  std::vector<std::size_t> counts(4);
  std::vector<std::thread> threads;
  for (std::size_t& count : counts)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::vector<MatchedSpan> spans;
        regex.find("hello wall", 0, spans);
        count += spans.size();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(counts, testing::Each(400u));
}

}  // namespace
}  // namespace sinkscope
