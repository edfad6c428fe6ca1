#include "text/pretokenizer.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> pieces(const Json& component, const std::string& text, bool at_text_start = true) {
  const Pieces cut =
      pretokenize(read_pretokenizer(JsonPlace{component, "FILE: pre_tokenizer"}), text, at_text_start);
  std::vector<std::string> out;
  for (const Span span : cut.spans) out.emplace_back(span.of(cut.text));
  return out;
}

Json split(const std::string& behavior, bool invert) {
  return {{"type", "Split"}, {"pattern", {{"Regex", "-"}}}, {"behavior", behavior}, {"invert", invert}};
}

std::string read_error(const Json& json) {
  try {
    read_pretokenizer(JsonPlace{json, "FILE: pre_tokenizer"});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Split, EveryBehavior) {
  EXPECT_THAT(pieces(split("Isolated", false), "a-bc--d"), ElementsAre("a", "-", "bc", "-", "-", "d"));
  EXPECT_THAT(pieces(split("Removed", false), "a-bc--d"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(pieces(split("MergedWithPrevious", false), "a-bc--d"), ElementsAre("a-", "bc-", "-", "d"));
  EXPECT_THAT(pieces(split("MergedWithNext", false), "a-bc--d"), ElementsAre("a", "-bc", "-", "-d"));
  EXPECT_THAT(pieces(split("Contiguous", false), "a-bc--d"), ElementsAre("a", "-", "bc", "--", "d"));
}

TEST(Split, InvertedTakesWhatDoesNotMatchForTheDelimiter) {
  EXPECT_THAT(pieces(split("Isolated", true), "a-bc"), ElementsAre("a", "-", "bc"));
  EXPECT_THAT(pieces(split("Removed", true), "a-bc--d"), ElementsAre("-", "-", "-"));
  EXPECT_THAT(pieces(split("MergedWithPrevious", true), "a-bc"), ElementsAre("a", "-bc"));
  EXPECT_THAT(pieces(split("MergedWithNext", true), "a-bc"), ElementsAre("a-", "bc"));
}

TEST(Split, BehaviorsJoinWithinAPieceOnly) {
  const Json two = {{"type", "Sequence"},
                    {"pretokenizers", {{{"type", "WhitespaceSplit"}}, split("MergedWithPrevious", false)}}};
  EXPECT_THAT(pieces(two, "a -b"), ElementsAre("a", "-", "b"));
}

TEST(Split, StringsAreTakenLiterally) {
  EXPECT_THAT(pieces({{"type", "Split"}, {"pattern", {{"String", "."}}}, {"behavior", "Removed"}}, "a.b.."),
              ElementsAre("a", "b"));
}

TEST(ByteLevel, WritesBytesInItsAlphabet) {
  const Json plain = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  EXPECT_THAT(pieces(plain, "a é\n"), ElementsAre("aĠÃ©Ċ"));
}

TEST(ByteLevel, SplitsAndPrefixesByDefault) {
  EXPECT_THAT(pieces({{"type", "ByteLevel"}}, "it's  me"), ElementsAre("Ġit", "'s", "Ġ", "Ġme"));
  EXPECT_THAT(pieces({{"type", "ByteLevel"}}, " me"), ElementsAre("Ġme"));
}

TEST(Metaspace, PrependSchemes) {
  Json json = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  EXPECT_THAT(pieces(json, "a  b", false), ElementsAre("▁a", "▁", "▁b"));
  EXPECT_THAT(pieces(json, " a"), ElementsAre("▁a"));
  json["prepend_scheme"] = "first";
  EXPECT_THAT(pieces(json, "a b", true), ElementsAre("▁a", "▁b"));
  EXPECT_THAT(pieces(json, "a b", false), ElementsAre("a", "▁b"));
  json["prepend_scheme"] = "never";
  EXPECT_THAT(pieces(json, "a b"), ElementsAre("a", "▁b"));
  json["split"] = false;
  EXPECT_THAT(pieces(json, "a b"), ElementsAre("a▁b"));
}

TEST(Metaspace, OlderFilesSayAddPrefixSpace) {
  EXPECT_THAT(pieces({{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", true}}, "a b"),
              ElementsAre("_a", "_b"));
  EXPECT_THAT(pieces({{"type", "Metaspace"}, {"replacement", "_"}, {"add_prefix_space", false}}, "a b"),
              ElementsAre("a", "_b"));
}

TEST(CharacterClasses, DigitsPunctuationAndSpaces) {
  EXPECT_THAT(pieces({{"type", "Digits"}, {"individual_digits", true}}, "a12½"),
              ElementsAre("a", "1", "2", "½"));
  EXPECT_THAT(pieces({{"type", "Digits"}}, "a12½b"), ElementsAre("a", "12½", "b"));
  EXPECT_THAT(pieces({{"type", "Punctuation"}}, "a?!b¿"), ElementsAre("a", "?", "!", "b", "¿"));
  EXPECT_THAT(pieces({{"type", "WhitespaceSplit"}}, " a!\u3000b "), ElementsAre("a!", "b"));
  EXPECT_THAT(pieces({{"type", "Whitespace"}}, "a_b!? c\u200Dd"), ElementsAre("a_b", "!?", "c\u200Dd"));
}

TEST(Pretokenizer, EmptyTextHasNoPieces) { EXPECT_TRUE(pieces({{"type", "ByteLevel"}}, "").empty()); }

TEST(Pretokenizer, RefusesByFileAndComponent) {
  EXPECT_EQ(read_error({{"type", "Sequence"}, {"pretokenizers", {{{"type", "BertPreTokenizer"}}}}}),
            "FILE: pre_tokenizer.pretokenizers[0]: the pre-tokenizer \"BertPreTokenizer\" is not supported");
  EXPECT_THAT(read_error({{"type", "Split"}, {"pattern", "x"}, {"behavior", "Removed"}}),
              HasSubstr("FILE: pre_tokenizer.pattern is a string"));
  EXPECT_THAT(read_error({{"type", "Split"}, {"pattern", Json::object()}, {"behavior", "Removed"}}),
              HasSubstr("pattern must be {\"String\": ...} or {\"Regex\": ...}"));
  EXPECT_THAT(read_error({{"type", "Split"}, {"pattern", {{"String", "a"}}}, {"behavior", "removed"}}),
              HasSubstr("behavior is \"removed\"; Removed, Isolated"));
  EXPECT_THAT(read_error({{"type", "Metaspace"}, {"replacement", "ab"}}), HasSubstr("exactly one character"));
  EXPECT_THAT(read_error({{"type", "Metaspace"}, {"replacement", "_"}, {"prepend_scheme", "last"}}),
              HasSubstr("prepend_scheme is \"last\"; first, never or always"));
  EXPECT_THAT(read_error({{"type", "Metaspace"},
                          {"replacement", "_"},
                          {"prepend_scheme", "first"},
                          {"add_prefix_space", false}}),
              HasSubstr("contradicts"));
  EXPECT_THAT(read_error({{"type", "ByteLevel"}, {"use_regex", "no"}}),
              HasSubstr("true or false would be right"));
}

}  // namespace
}  // namespace sinkscope
