#include "text/new_tokenizer.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include "base/json.h"
#include "text/pretokenizer.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Special tokens <b> <e> <m> 0 to 2, bytes 3 to 258, then ab, " ab".
NewTokenizer small() {
  const LearnedBpe learned = train_bpe({{"ab", 9}, {" ab", 5}}, {.most_merges = 2, .progress = {}});
  return {
      {.bos = "<b>", .eos = "<e>", .pad = "<e>", .mask = "<m>", .others = {}}, qwen2_pattern, learned.merges};
}

// The message of the UsageError that a call throws.
template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(NewTokenizer, OurTokenizerReadsTheFile) {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json(small()), "DIR/tokenizer.json");
  EXPECT_EQ(tokenizer.size(), 261);
  EXPECT_EQ(small().size(), 261U);
  const auto letter = [&](const char* text) { return *tokenizer.id_of(text); };
  EXPECT_THAT(tokenizer.encode("ab ab<m>b"), ElementsAre(259, 260, 2, letter("b")));
  EXPECT_EQ(letter("!"), 3);    // the first letter of the alphabet
  EXPECT_EQ(letter("Ń"), 258);  // its last one: byte 0xAD
  EXPECT_TRUE(tokenizer.is_special(0));
  EXPECT_FALSE(tokenizer.is_special(3));
  EXPECT_EQ(tokenizer.encode("12").size(), 2U);
  EXPECT_EQ(tokenizer.encode("x", true).size(), 1U);  // nothing is added around
}

TEST(NewTokenizer, EveryByteSurvives) {
  const Tokenizer tokenizer = Tokenizer::parse(tokenizer_json(small()), "DIR/tokenizer.json");
  std::string text;
  for (std::uint32_t c = 0; c < 0x3000; ++c) {
    if (c < 0x80) {
      text.push_back(static_cast<char>(c));
    } else if (c < 0x800) {
      text.push_back(static_cast<char>(0xC0 | c >> 6));
      text.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    } else {
      text.push_back(static_cast<char>(0xE0 | c >> 12));
      text.push_back(static_cast<char>(0x80 | (c >> 6 & 0x3F)));
      text.push_back(static_cast<char>(0x80 | (c & 0x3F)));
    }
  }
  EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
}

TEST(NewTokenizer, TheConfigNamesTheSpecialTokens) {
  const Json config = Json::parse(tokenizer_config_json(small()));
  EXPECT_EQ(config["bos_token"], "<b>");
  EXPECT_EQ(config["eos_token"], "<e>");
  EXPECT_EQ(config["pad_token"], "<e>");
  EXPECT_EQ(config["mask_token"], "<m>");
  EXPECT_EQ(config["added_tokens_decoder"]["2"]["content"], "<m>");
  EXPECT_EQ(config["added_tokens_decoder"].size(), 3U);
  NewTokenizer without = small();
  without.special.mask = "";
  EXPECT_FALSE(Json::parse(tokenizer_config_json(without)).contains("mask_token"));
}

TEST(NewTokenizer, SpecialTokensThatCouldBeMixedUpAreRefused) {
  const auto with = [](const std::string& token) {
    return refusal([&] { listed_tokens({.bos = "", .eos = "", .pad = "", .mask = "", .others = {token}}); });
  };
  EXPECT_EQ(with("<|user|>"), "");
  EXPECT_EQ(with("▁"), "");
  EXPECT_THAT(with("a"), HasSubstr("special token \"a\" is spelled like the token of the bytes \"a\""));
  EXPECT_THAT(with("Ġthe"), HasSubstr("bytes \" the\""));
  EXPECT_THAT(with(std::string(1025, 'x')), HasSubstr("has 1025 bytes; 1024 are the most"));
  EXPECT_THAT(with("a\xFF"), HasSubstr("is not UTF-8"));
  EXPECT_THAT(listed_tokens({.bos = "<b>", .eos = "<e>", .pad = "<e>", .mask = "", .others = {"<b>", "<x>"}}),
              ElementsAre("<b>", "<e>", "<x>"));
}

TEST(NewTokenizer, PatternsByNameOrText) {
  EXPECT_EQ(split_pattern("gpt2"), gpt2_pattern);
  EXPECT_EQ(split_pattern("qwen2"), qwen2_pattern);
  EXPECT_THAT(split_pattern("llama3"), HasSubstr(R"(\p{N}{1,3})"));
  EXPECT_EQ(split_pattern("[a-z]+"), "[a-z]+");
  EXPECT_THAT(refusal([] { split_pattern("gpt4"); }),
              HasSubstr("no pattern \"gpt4\"; there are qwen2, llama3, gpt2"));
  EXPECT_THAT(refusal([] { split_pattern(""); }), HasSubstr("no pattern \"\""));
  EXPECT_THAT(refusal([] { split_pattern("[a-z"); }), HasSubstr("does not compile"));
  EXPECT_THAT(refusal([] { split_pattern("\xFF+"); }), HasSubstr("is not UTF-8"));
}

}  // namespace
}  // namespace sinkscope
