#include "text/bpe.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Ids encode(const Json& json, const std::string& text) { return parse(json).encode(text); }

// Vocabulary of the listed tokens with ids in order, and merges.
Json model(const std::vector<std::string>& tokens, const Json& merges) {
  Json json = small_tokenizer();
  Json vocabulary = Json::object();
  for (std::size_t i = 0; i < tokens.size(); ++i) vocabulary[tokens[i]] = i;
  json["added_tokens"] = Json::array();
  json["model"] = {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", merges}};
  return json;
}

TEST(Bpe, LowestRankFirstThenLeftmost) {
  EXPECT_THAT(encode(small_tokenizer(), "abcab"), ElementsAre(5, 4));
  // b c goes before a b, so abc is a + bc.
  EXPECT_THAT(encode(model({"a", "b", "c", "ab", "bc"}, {"b c", "a b"}), "abc"), ElementsAre(0, 4));
  EXPECT_THAT(encode(model({"a", "aa"}, {"a a"}), "aaa"), ElementsAre(1, 0));
}

TEST(Bpe, OfAMergeThatStandsTwiceTheLastCounts) {
  EXPECT_THAT(encode(model({"a", "b", "c", "ab", "bc"}, {"a b", "b c", "a b"}), "abc"), ElementsAre(0, 4));
}

TEST(Bpe, BothFormatsOfMerges) {
  const Json pairs = small_with("/model/merges", Json::parse(R"([["a", "b"], ["ab", "c"]])"));
  EXPECT_THAT(encode(pairs, "abcab"), ElementsAre(5, 4));
  EXPECT_THAT(encode(small_with("/model/merges", {"#version: 0.2", "a b", "ab c"}), "abc"), ElementsAre(5));
}

TEST(Bpe, TokensThatHoldSpaces) {
  EXPECT_THAT(encode(model({"a", " ", "b", "a ", "a b"}, Json::parse(R"([["a", " "], ["a ", "b"]])")), "a b"),
              ElementsAre(4));
  // As a string, "a  b" can only mean "a " + "b" here.
  EXPECT_THAT(encode(model({"a", " ", "b", "a ", "a b"}, Json::parse(R"([["a", " "], "a  b"])")), "a b"),
              ElementsAre(4));
  EXPECT_THAT(load_error(model({"a", "b"}, {"a b c"})),
              HasSubstr("DIR/tokenizer.json: model.merges[0]: the merge \"a b c\" is not two tokens"));
}

TEST(Bpe, UnknownCharacters) {
  EXPECT_THAT(encode(small_tokenizer(), "axyb"), ElementsAre(1, 0, 0, 2));
  EXPECT_THAT(encode(small_with("/model/fuse_unk", true), "axyb"), ElementsAre(1, 0, 2));
  EXPECT_THAT(encode(small_with("/model/unk_token", nullptr), "axyb"), ElementsAre(4));
  try {
    encode(small_with("/model/unk_token", "<what>"), "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("unk_token \"<what>\" is not in the vocabulary"));
  }
}

TEST(Bpe, ByteFallbackNeedsAllBytesOfACharacter) {
  Json json = model({"<unk>", "<0xC3>", "<0xA9>", "<0xE6>"}, Json::array());
  json["model"]["unk_token"] = "<unk>";
  json["model"]["byte_fallback"] = true;
  EXPECT_THAT(encode(json, "é株"), ElementsAre(1, 2, 0));
  // As in the original, unk waits for the next known character and bytes are none.
  EXPECT_THAT(encode(json, "株é"), ElementsAre(1, 2, 0));
}

TEST(Bpe, IgnoreMergesLooksThePieceUpFirst) {
  Json json = model({"a", "b", "c", "abc"}, Json::array());
  EXPECT_THAT(encode(json, "abc"), ElementsAre(0, 1, 2));
  json["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(json, "abc"), ElementsAre(3));
  EXPECT_THAT(encode(json, "abca"), ElementsAre(0, 1, 2, 0));
}

TEST(Bpe, CutsAtSpaceMarksOnlyWhenNoTokenCrosses) {
  const std::vector<std::string> tokens = {"<unk>", "▁", "a", "▁a", "a▁", "▁▁"};
  Json crossing = model(tokens, Json::parse(R"([["a", "▁"], ["▁", "a"]])"));
  crossing["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(encode(crossing, "▁a▁a"), ElementsAre(1, 4, 2));
  Json separate = model(tokens, Json::parse(R"([["▁", "▁"], ["▁", "a"]])"));
  separate["model"]["unk_token"] = "<unk>";
  EXPECT_THAT(encode(separate, "▁a▁▁a"), ElementsAre(3, 5, 2));
  // Without unk the x vanishes and the marks meet.
  separate["model"].erase("unk_token");
  EXPECT_THAT(encode(separate, "▁x▁"), ElementsAre(5));
}

TEST(Bpe, LongRunsOfOneCharacter) {
  Json json = model({"a", "aa", "aaaa"}, {"a a", "aa aa"});
  const Ids ids = encode(json, std::string(1'000'003, 'a'));
  EXPECT_EQ(ids.size(), 250'000u + 2);
  EXPECT_EQ(ids.front(), 2);
  EXPECT_EQ(ids.back(), 0);
}

TEST(Bpe, TheCacheChangesNothing) {
  // More different pieces than the cache holds, each twice.
  Json json = small_with("/pre_tokenizer", {{"type", "WhitespaceSplit"}});
  std::string text;
  Ids expected;
  for (int round = 0; round < 2; ++round)
    for (unsigned i = 0; i < 40000; ++i) {
      for (unsigned bit = 0; bit < 16; ++bit) {
        text.push_back(i >> bit & 1U ? 'c' : 'b');
        expected.push_back(i >> bit & 1U ? 3 : 2);
      }
      text.push_back(' ');
    }
  EXPECT_EQ(encode(json, text), expected);
}

TEST(Bpe, RefusesOtherModelsAndOptions) {
  EXPECT_EQ(load_error(small_with("/model/type", "Unigram")),
            "DIR/tokenizer.json: model: the model \"Unigram\" is not supported");
  EXPECT_THAT(load_error(small_with("/model/type", "WordPiece")),
              HasSubstr("\"WordPiece\" is not supported"));
  EXPECT_THAT(load_error(small_with("/model/merges", nullptr)), HasSubstr("only BPE models are supported"));
  EXPECT_THAT(load_error(small_with("/model/dropout", 0.1)), HasSubstr("model.dropout is not supported"));
  EXPECT_THAT(load_error(small_with("/model/continuing_subword_prefix", "##")),
              HasSubstr("continuing_subword_prefix is not supported"));
  EXPECT_THAT(load_error(small_with("/model/end_of_word_suffix", "</w>")),
              HasSubstr("end_of_word_suffix is not supported"));
  EXPECT_EQ(load_error(small_with("/model/dropout", 0.0)), "");
  EXPECT_EQ(load_error(small_with("/model/end_of_word_suffix", "")), "");
}

TEST(Bpe, NamesTheMergeWithoutItsToken) {
  EXPECT_EQ(load_error(small_with("/model/merges", {"a b", "a d"})),
            "DIR/tokenizer.json: model: merge 1 needs the token \"d\", which is not in the vocabulary");
  EXPECT_THAT(load_error(small_with("/model/merges", {"b a"})), HasSubstr("needs the token \"ba\""));
  EXPECT_THAT(load_error(small_with("/model/merges", {7})),
              HasSubstr("merges[0] must be a string \"a b\" or a list"));
  EXPECT_THAT(load_error(small_with("/model/merges", Json::parse(R"([["a", "b", "c"]])"))),
              HasSubstr("merges[0] must be"));
  EXPECT_THAT(load_error(small_with("/model/merges", "a b")), HasSubstr("an array would be right"));
}

TEST(Vocabulary, RefusesIdsThatCannotBe) {
  for (const Json& id :
       {Json(-1), Json(1.5), Json("7"), Json(4194304), Json(18446744073709551615U), Json(nullptr)})
    EXPECT_THAT(load_error(small_with("/model/vocab/a", id)), HasSubstr("the id of \"a\" is")) << id;
  EXPECT_THAT(load_error(small_with("/model/vocab/a", 2)), HasSubstr("\"a\" and \"b\" have the same id 2"));
  EXPECT_THAT(load_error(small_with("/model/vocab", Json::array())), HasSubstr("model.vocab is an array"));
}

TEST(Vocabulary, MayHaveHolesAndRepeatedKeys) {
  EXPECT_THAT(encode(small_with("/model/vocab/a", 4000), "a"), ElementsAre(4000));
  const std::string twice = R"({"model": {"vocab": {"a": 0, "a": 3}, "merges": []}})";
  EXPECT_THAT(Tokenizer::parse(twice, "FILE").encode("a"), ElementsAre(3));
}

}  // namespace
}  // namespace sinkscope
