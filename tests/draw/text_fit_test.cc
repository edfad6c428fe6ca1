// Text that fits, of characters that there are.
#include "draw/text_fit.h"

#include <gmock/gmock.h>

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::Field;

TEST(TextFit, ColumnsAreThoseOfATerminal) {
  EXPECT_EQ(text_columns("abc"), 3U);
  EXPECT_EQ(text_columns("␣é"), 2U);
  EXPECT_EQ(text_columns("株式"), 4U);
  EXPECT_EQ(text_columns("e\u0301"), 1U);
  EXPECT_EQ(text_columns("\xF0\x9F"), 8U) << "bytes are shown as <F0 9F>";
}

TEST(TextFit, LongLabelsAreCutBetweenCharacters) {
  EXPECT_EQ(shortened("word", 4), "word");
  EXPECT_EQ(shortened("words", 4), "wor…");
  EXPECT_EQ(shortened("株式会社", 4), "株…");
  EXPECT_EQ(shortened("", 0), "");
}

TEST(TextFit, LinesBreakAtSpaces) {
  EXPECT_THAT(wrapped("one two three", 7), ElementsAre("one two", "three"));
  EXPECT_THAT(wrapped("unbreakable", 6), ElementsAre("unbre…"));
  EXPECT_TRUE(wrapped("", 6).empty());
}

TEST(TextFit, TheStrongestLabelsStay) {
  const std::vector<Label> kept =
      thinned({{0, "a", 1}, {1, "b", 5}, {2, "c", 2}, {4, "d", 0.5}, {2.5, "e", 2}}, 2);
  EXPECT_THAT(kept, ElementsAre(Field(&Label::text, "b"), Field(&Label::text, "d")));
  EXPECT_THAT(thinned({{0, "a", 1}, {1, "b", 1}}, 2), ElementsAre(Field(&Label::text, "a")));
  std::vector<Label> many;
  for (int i = 0; i < 4096; ++i)
    many.push_back({static_cast<double>(i), "x", static_cast<double>(i * 7 % 101)});
  const std::vector<Label> few = thinned(many, 50);
  for (std::size_t i = 1; i < few.size(); ++i) EXPECT_GE(few[i].at - few[i - 1].at, 50);
  EXPECT_GT(few.size(), 40U);
}

TEST(Glyphs, CharactersWithoutAGlyphBecomeTheirNumbers) {
  const Glyphs glyphs("20-7e e9 3b1-3c9");
  bool missing = false;
  EXPECT_EQ(glyphs.shown("Seán é α", missing), "Se<U+00E1>n é α");
  EXPECT_TRUE(missing);
  missing = false;
  EXPECT_EQ(glyphs.shown("plain", missing), "plain");
  EXPECT_FALSE(missing);
  EXPECT_EQ(glyphs.shown("株式 x", missing), "<U+682A U+5F0F> x");
  EXPECT_EQ(glyphs.shown(std::string_view("a\x01\n\0b", 5), missing), "a<U+0001 U+000A U+0000>b");
  EXPECT_EQ(glyphs.shown("\xF0\x9Fz\xFF", missing), "<F0 9F>z<FF>");
}

TEST(Glyphs, ListsOfSeveralFontsAreJoined) {
  const Glyphs glyphs("41-43 61 \n 42-45 44-44 100000-10ffff");
  for (const std::uint32_t c : {0x41U, 0x43U, 0x44U, 0x45U, 0x61U, 0x10ffffU})
    EXPECT_TRUE(glyphs.has(c)) << c;
  for (const std::uint32_t c : {0x40U, 0x46U, 0x60U, 0x62U, 0xfffffU}) EXPECT_FALSE(glyphs.has(c)) << c;
  EXPECT_FALSE(Glyphs("").has('a'));
}

TEST(Glyphs, InstalledFontsHaveLatinLetters) {
  for (char c = '!'; c <= '~'; ++c) EXPECT_TRUE(Glyphs::installed().has(static_cast<std::uint32_t>(c))) << c;
}

}  // namespace
}  // namespace sinkscope
