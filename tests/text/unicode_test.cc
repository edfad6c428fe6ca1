#include "text/unicode.h"

#include <gtest/gtest.h>

namespace sinkscope {
namespace {

TEST(DecodeUtf8, KnowsEveryLength) {
  EXPECT_EQ(decode_utf8("a").code_point, 0x61u);
  EXPECT_EQ(decode_utf8("é").code_point, 0xE9u);
  EXPECT_EQ(decode_utf8("株").code_point, 0x682Au);
  EXPECT_EQ(decode_utf8("🦊").code_point, 0x1F98Au);
  EXPECT_EQ(decode_utf8("🦊x").length, 4u);
}

TEST(DecodeUtf8, RefusesWhatIsNoUtf8) {
  for (const char* bad : {"\x80", "\xC0\x80", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xE6\xA0", "\xFF"})
    EXPECT_EQ(decode_utf8(bad).length, 0u) << testing::PrintToString(bad);
}

// Python: b"...".decode(errors="replace")
TEST(ReplaceInvalidUtf8, OneReplacementForEachMaximalPart) {
  EXPECT_EQ(replace_invalid_utf8("a\xFF"
                                 "b"),
            "a\uFFFDb");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\xA6"), "\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xF0\x9F\xA6x\xE6"), "\uFFFDx\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");
  EXPECT_EQ(replace_invalid_utf8("株"), "株");
}

TEST(IsValidUtf8, SeesAnInvalidByteBehindManyGoodOnes) {
  EXPECT_TRUE(is_valid_utf8("sixteen letters é"));
  EXPECT_FALSE(is_valid_utf8("sixteen letters \xE9"));
}

TEST(IsWhiteSpace, IsUnicodesPropertyNotPcres) {
  for (const std::uint32_t c : {0x09u, 0x0Du, 0x20u, 0x85u, 0xA0u, 0x2028u, 0x3000u})
    EXPECT_TRUE(is_white_space(c)) << c;
  for (const std::uint32_t c : {0x1Cu, 0x180Eu, 0x200Bu, 0xFEFFu}) EXPECT_FALSE(is_white_space(c)) << c;
}

TEST(StripPythonSpace, TakesSeparatorsAndKeepsTheMiddle) {
  EXPECT_EQ(strip_python_space(" \n\t\u00A0\u3000x y\x1C\r\n"), "x y");
  EXPECT_EQ(strip_python_space("\u200Bx"), "\u200Bx");
  EXPECT_EQ(strip_python_space(" \n "), "");
}

TEST(AppendUtf8, IsDecodingReversed) {
  for (const std::uint32_t c : {0x0u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(decode_utf8(text).code_point, c);
    EXPECT_EQ(decode_utf8(text).length, text.size());
  }
}

}  // namespace
}  // namespace sinkscope
