#include "text/normalizer.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::HasSubstr;

std::string normalized(const char* component, const std::string& text) {
  const Json json = Json::parse(component);
  return normalize(read_normalizer(JsonPlace{json, "FILE: normalizer"}), text);
}

std::string read_error(const Json& json) {
  try {
    read_normalizer(JsonPlace{json, "FILE: normalizer"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Normalizer, UnicodeForms) {
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "e\u0301 \u1100\u1161 ﬁ"), "é 가 ﬁ");
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "é"), "e\u0301");
  EXPECT_EQ(normalized(R"({"type": "NFKC"})", "ﬁ ②"), "fi 2");
  EXPECT_EQ(normalized(R"({"type": "NFKD"})", "ﬁé"), "fie\u0301");
}

TEST(Normalizer, MarksComeIntoCanonicalOrder) {
  // A dot below (class 220) goes before an acute (class 230).
  EXPECT_EQ(normalized(R"({"type": "NFD"})", "a\u0301\u0323"), "a\u0323\u0301");
  EXPECT_EQ(normalized(R"({"type": "NFC"})", "a\u0301\u0323"), "ạ\u0301");
}

TEST(Normalizer, ALongRunOfMarksIsSortedNotBubbled) {
  std::string text = "a", ordered = "a";
  for (int i = 0; i < 100000; ++i) text += "\u0301\u0323";
  for (int i = 0; i < 100000; ++i) ordered += "\u0323";
  for (int i = 0; i < 100000; ++i) ordered += "\u0301";
  EXPECT_EQ(normalize_unicode(UnicodeForm::nfd, text), ordered);
}

TEST(Normalizer, LowercaseIsRusts) {
  EXPECT_EQ(normalized(R"({"type": "Lowercase"})", "AÉΣİ1"), "aéσi\u03071");
}

TEST(Normalizer, PrependLeavesAnEmptyTextAlone) {
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", "a"), "▁a");
  EXPECT_EQ(normalized(R"({"type": "Prepend", "prepend": "▁"})", ""), "");
}

TEST(Normalizer, ReplaceTakesStringsAndPatterns) {
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"String": " "}, "content": "▁"})", "a  b"), "a▁▁b");
  EXPECT_EQ(normalized(R"({"type": "Replace", "pattern": {"Regex": " +"}, "content": "▁"})", "a  b"), "a▁b");
}

TEST(Normalizer, StripTakesTheSidesItIsTold) {
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": true})", " \u3000a \n"), "a");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": true, "strip_right": false})", " a "), "a ");
  EXPECT_EQ(normalized(R"({"type": "Strip", "strip_left": false, "strip_right": true})", " é "), " é");
}

TEST(Normalizer, SequencesGoInOrder) {
  EXPECT_EQ(normalized(R"({"type": "Sequence", "normalizers": [
                           {"type": "Prepend", "prepend": " "}, {"type": "Sequence", "normalizers": [
                             {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]}]})",
                       "a b"),
            "▁a▁b");
}

TEST(Normalizer, RefusesByFileAndComponent) {
  EXPECT_EQ(read_error({{"type", "StripAccents"}}),
            "FILE: normalizer: the normalizer \"StripAccents\" is not supported");
  EXPECT_THAT(read_error({{"type", 7}}),
              HasSubstr("FILE: normalizer.type is an integer; a string would be right"));
  EXPECT_THAT(read_error("NFC"), HasSubstr("FILE: normalizer is a string; an object would be right"));
  EXPECT_THAT(read_error({{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", ""}}),
              HasSubstr("pattern.String is empty"));
  EXPECT_THAT(read_error({{"type", "Replace"}, {"pattern", {{"Regex", "(a)"}}}, {"content", "$1"}}),
              HasSubstr("`$` in the content"));
}

TEST(Normalizer, BoundsTheDepthOfSequences) {
  Json json = {{"type", "NFC"}};
  for (int i = 0; i < 20; ++i) json = {{"type", "Sequence"}, {"normalizers", Json::array({json})}};
  EXPECT_THAT(read_error(json), HasSubstr("Sequences nest more than 16 deep"));
}

}  // namespace
}  // namespace sinkscope
