#include "text/added_tokens.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Text is cut at the added token "[x]" (id 9) with the flags; the parts between are given in quotes.
std::vector<std::string> cut(const AddedToken& token, const std::string& text) {
  AddedTokenFinder finder;
  finder.add(token.content, &token);
  std::vector<std::string> out;
  for (const TokenStretch& stretch : finder.find(text))
    out.push_back(stretch.token != nullptr ? "<" + std::string(stretch.span.of(text)) + ">"
                                           : std::string(stretch.span.of(text)));
  return out;
}

AddedToken token(const std::string& content) { return {content, 9, true, false, false, false, false}; }

Json added(const std::string& content, int id, const Json& flags = Json::object()) {
  Json json = {{"id", id}, {"content", content}, {"special", true}, {"normalized", false}};
  json.update(flags);
  return json;
}

TEST(AddedTokens, CutTheText) {
  EXPECT_THAT(cut(token("[x]"), "a [x][x] [x"), ElementsAre("a ", "<[x]>", "<[x]>", " [x"));
  EXPECT_TRUE(cut(token("[x]"), "").empty());
}

TEST(AddedTokens, LongestAtTheLeftmostPlace) {
  const AddedToken short_token = token("ab"), long_token = token("abc"), later = token("bcd");
  AddedTokenFinder finder;
  for (const AddedToken* t : {&short_token, &long_token, &later}) finder.add(t->content, t);
  const auto found = finder.find("abcd");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].token, &long_token);
}

TEST(AddedTokens, StripTakesWhiteSpaceAlong) {
  AddedToken left = token("[x]"), right = token("[x]");
  left.lstrip = true;
  right.rstrip = true;
  EXPECT_THAT(cut(left, "a \u3000\n[x] b"), ElementsAre("a", "< \u3000\n[x]>", " b"));
  EXPECT_THAT(cut(right, "a [x] \t b"), ElementsAre("a ", "<[x] \t >", "b"));
  EXPECT_THAT(cut(left, "[x] [x]"), ElementsAre("<[x]>", "< [x]>"));
}

TEST(AddedTokens, SingleWordsStandAlone) {
  AddedToken word = token("mask");
  word.single_word = true;
  EXPECT_THAT(cut(word, "mask, mask masks unmask"), ElementsAre("<mask>", ", ", "<mask>", " masks unmask"));
  EXPECT_THAT(cut(word, "e\u0301mask"), ElementsAre("e\u0301mask"));
}

TEST(AddedTokens, NormalizedOnesAreSoughtInTheNormalizedText) {
  Json json = small_with("/normalizer", {{"type", "Lowercase"}});
  json["added_tokens"] = {added("Cab", 6, {{"normalized", true}}), added("BC", 7)};
  // "Cab" is looked for as "cab"; "BC" as it is, before.
  EXPECT_THAT(parse(json).encode("CABBC cabbc"), ElementsAre(6, 7, 0, 6, 2, 3));
}

TEST(AddedTokens, SpecialIsAboutDecodingOnly) {
  Json json = small_tokenizer();
  json["added_tokens"] = {added("<s>", 6), added("<t>", 7, {{"special", false}})};
  const Tokenizer tokenizer = parse(json);
  EXPECT_THAT(tokenizer.encode("a<s><t>"), ElementsAre(1, 6, 7));
  EXPECT_TRUE(tokenizer.is_special(6));
  EXPECT_FALSE(tokenizer.is_special(7));
  EXPECT_FALSE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(-1));
  EXPECT_EQ(tokenizer.decode(Ids{1, 6, 7}), "a<s><t>");
  EXPECT_EQ(tokenizer.decode(Ids{1, 6, 7}, true), "a<t>");
}

TEST(AddedTokens, KeepTheIdsOfTheFile) {
  Json json = small_tokenizer();
  json["added_tokens"] = {added("<s>", 100), added("<unk>", 0)};
  const Tokenizer tokenizer = parse(json);
  EXPECT_THAT(tokenizer.encode("<s><unk>"), ElementsAre(100, 0));
  EXPECT_EQ(tokenizer.size(), 101);
}

TEST(AddedTokens, RefusesContradictions) {
  const auto error = [](const Json& tokens) { return load_error(small_with("/added_tokens", tokens)); };
  EXPECT_EQ(error(Json::array({added("<s>", 1)})),
            "DIR/tokenizer.json: the added token \"<s>\" has id 1, which the vocabulary gives to \"a\"");
  EXPECT_THAT(error(Json::array({added("a", 7)})),
              HasSubstr("\"a\" has id 7, but the vocabulary gives it id 1"));
  EXPECT_THAT(error(Json::array({added("<s>", 6), added("<t>", 6)})),
              HasSubstr("\"<s>\" and \"<t>\" have the same id 6"));
  EXPECT_THAT(error(Json::array({added("<s>", 6), added("<s>", 7)})),
              HasSubstr("\"<s>\" stands there twice"));
  EXPECT_EQ(error(Json::array({added("<s>", 6), added("<s>", 6)})), "");
}

TEST(AddedTokens, RefusesBrokenEntries) {
  const auto error = [](const Json& tokens) { return load_error(small_with("/added_tokens", tokens)); };
  EXPECT_THAT(error(Json::array({added("", 6)})), HasSubstr("added_tokens[0].content is empty"));
  EXPECT_THAT(error(Json::array({added(std::string(2000, 'x'), 6)})), HasSubstr("is 2000 bytes long"));
  EXPECT_THAT(error(Json::array({added("<s>", -6)})),
              HasSubstr("added_tokens[0].id is -6; an integer from 0 to"));
  EXPECT_THAT(error(Json::array({added("<s>", 6, {{"special", 1}})})),
              HasSubstr("added_tokens[0].special is an integer"));
  EXPECT_THAT(error(Json::array({{{"id", 6}}})), HasSubstr("added_tokens[0] has no \"content\""));
  EXPECT_THAT(error(Json::array({"<s>"})),
              HasSubstr("added_tokens[0] is a string; an object would be right"));
  EXPECT_THAT(error("<s>"), HasSubstr("added_tokens is a string; an array would be right"));
}

}  // namespace
}  // namespace sinkscope
