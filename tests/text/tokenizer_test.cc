#include <sinkscope/tokenizer.h>

#include <thread>

#include "base/files.h"
#include "support/temporary_folder.h"
#include "text/normalizer.h"
#include "text/small_tokenizer.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Tokenizer test_tokenizer(const char* name) {
  const std::string path = std::string(SINKSCOPE_TEST_DATA) + "/tokenizers/" + name;
  return Tokenizer::parse(read_file(path), path);
}

std::string load_folder_error(const std::filesystem::path& folder) {
  try {
    Tokenizer::load(folder);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

const char* const mixed_texts[] = {"",
                                   " ",
                                   "Hello  wörld\n\n\t12",
                                   "e\u0301",
                                   "a<|start|>b <tool>",
                                   "日本 🦊",
                                   "\r\n \r",
                                   "word",
                                   "don't",
                                   "\u3000"};

TEST(Tokenizer, DecodingIsEncodingReversed) {
  const Tokenizer byte_level = test_tokenizer("byte_level.json");
  const Tokenizer sentencepiece = test_tokenizer("sentencepiece.json");
  for (const std::string text : mixed_texts) {
    EXPECT_EQ(sentencepiece.decode(sentencepiece.encode(text)), text);
    EXPECT_EQ(byte_level.decode(byte_level.encode(text)), normalize_unicode(UnicodeForm::nfc, text));
  }
}

TEST(Tokenizer, BothFormatsOfMergesGiveEqualIds) {
  const std::string path = std::string(SINKSCOPE_TEST_DATA) + "/tokenizers/byte_level.json";
  Json json = read_json_file(path);
  const Tokenizer strings = parse(json);
  for (Json& merge : json["model"]["merges"]) {
    const auto text = merge.get<std::string>();
    const std::size_t space = text.find(' ');
    merge = {text.substr(0, space), text.substr(space + 1)};
  }
  const Tokenizer pairs = parse(json);
  std::string text;
  for (unsigned i = 0; i < 1000; ++i) {
    // Overlapping pieces of everything awkward.
    const std::string awkward = "hello  \n\t world 12 121\r\n🦊é he ll er<tool>word";
    text = replace_invalid_utf8(awkward.substr(i % awkward.size(), 1 + i / 20));
    EXPECT_EQ(strings.encode(text), pairs.encode(text)) << text;
  }
}

TEST(Tokenizer, InvalidUtf8CountsAsReplacementCharacters) {
  const Tokenizer tokenizer = test_tokenizer("byte_level.json");
  EXPECT_EQ(tokenizer.encode("a\xFF\xF0\x9F"
                             "b"),
            tokenizer.encode("a\uFFFD\uFFFDb"));
}

TEST(Tokenizer, IdsWithoutATokenDecodeToPlaceholders) {
  EXPECT_EQ(test_tokenizer("byte_level.json").decode(Ids{'h' - '!' + 33, 50400, -1, 2147483647}),
            "h<id:50400><id:-1><id:2147483647>");
  EXPECT_EQ(test_tokenizer("sentencepiece.json").decode(Ids{50400}), "<id:50400>");
}

TEST(Tokenizer, WithoutADecoderTokensAreJoinedBySpaces) {
  EXPECT_EQ(parse(small_with("/decoder", nullptr)).decode(Ids{4, 5, 6}), "ab abc <s>");
}

TEST(Tokenizer, AnswersAboutItsTokens) {
  const Tokenizer tokenizer = parse(small_tokenizer());
  EXPECT_EQ(tokenizer.id_of("abc"), 5);
  EXPECT_EQ(tokenizer.id_of("<s>"), 6);
  EXPECT_EQ(tokenizer.id_of("x"), std::nullopt);
  EXPECT_EQ(tokenizer.size(), 7);
}

TEST(Tokenizer, TruncationAndPaddingAreLeftToTheCaller) {
  Json json = small_with("/truncation", {{"max_length", 1}});
  json["padding"] = {{"strategy", "BatchLongest"}, {"pad_id", 0}};
  EXPECT_THAT(parse(json).encode("aaa"), ElementsAre(1, 1, 1));
}

TEST(Tokenizer, LongRunsEncode) {
  const Tokenizer tokenizer = test_tokenizer("byte_level.json");
  for (const char c : {'a', ' ', '\n'}) {
    const std::string text(1'000'000, c);
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, MayBeUsedFromSeveralThreads) {
  const Tokenizer tokenizer = test_tokenizer("byte_level.json");
  const Ids expected = tokenizer.encode("hello world 🦊");
  std::vector<int> equal(4);
  std::vector<std::thread> threads;
  for (int& count : equal)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) count += tokenizer.encode("hello world 🦊") == expected;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, ::testing::Each(200));
}

TEST(Tokenizer, EndlessBacktrackingIsAnError) {
  const Json json = small_with(
      "/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"behavior", "Isolated"}});
  try {
    parse(json).encode(std::string(100, 'a') + "b");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("DIR/tokenizer.json: pre_tokenizer.pattern: the regular expression backtracks"));
  }
}

TEST(TokenizerJson, RefusesWhatIsNoTokenizer) {
  const auto error = [](const std::string& text) {
    try {
      Tokenizer::parse(text, "DIR/tokenizer.json");
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_THAT(error(""), HasSubstr("DIR/tokenizer.json is not valid JSON"));
  EXPECT_THAT(error("version https://git-lfs.github.com/spec/v1"),
              HasSubstr("DIR/tokenizer.json is a Git LFS pointer"));
  EXPECT_THAT(error("<!DOCTYPE html>"), HasSubstr("is an HTML page"));
  EXPECT_THAT(error("[]"), HasSubstr("DIR/tokenizer.json holds an array; an object would be right"));
  EXPECT_THAT(error("{}"), HasSubstr("DIR/tokenizer.json has no \"model\""));
  EXPECT_THAT(error(R"({"version": "2.0", "model": {}})"),
              HasSubstr("version is \"2.0\"; only \"1.0\" is known"));
  EXPECT_THAT(error(R"({"model": 3})"), HasSubstr("DIR/tokenizer.json: model is an integer"));
  EXPECT_THAT(error(std::string(200000, '[')), HasSubstr("is not valid JSON"));
  EXPECT_THAT(error("{\"model\": \"\xFF\"}"), HasSubstr("is not valid JSON"));
}

TEST(TokenizerLoad, NamesTheFilesThatWouldBeRight) {
  const testing::TemporaryFolder folder;
  EXPECT_EQ(load_folder_error(folder.path()),
            folder.path().string() +
                " has no tokenizer: a tokenizer.json, or a vocab.json with a merges.txt, would be right");
  testing::write_file(folder / "vocab.json", "{}");
  EXPECT_THAT(load_folder_error(folder.path()), HasSubstr("has no tokenizer"));
}

TEST(TokenizerLoad, PrefersTokenizerJson) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "tokenizer.json", small_tokenizer().dump());
  testing::write_file(folder / "vocab.json", "broken");
  EXPECT_THAT(Tokenizer::load(folder.path()).encode("abc"), ElementsAre(5));
}

}  // namespace
}  // namespace sinkscope
