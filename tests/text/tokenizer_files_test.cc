// vocab.json + merges.txt, the slow tokenizers' files.
#include "base/files.h"
#include "support/temporary_folder.h"
#include "text/small_tokenizer.h"
#include "text/tokenizer_parts.h"

namespace sinkscope {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// byte_level.json of the test data, taken apart.
struct SlowFiles {
  testing::TemporaryFolder folder;
  Json json = read_json_file(std::string(SINKSCOPE_TEST_DATA) + "/tokenizers/byte_level.json");

  SlowFiles() {
    std::string merges = "#version: 0.2\n";
    for (const Json& merge : json["model"]["merges"]) merges += merge.get<std::string>() + "\n";
    testing::write_file(folder / "vocab.json", json["model"]["vocab"].dump());
    testing::write_file(folder / "merges.txt", merges);
  }
  std::string error() const {
    try {
      Tokenizer::load(folder.path());
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
};

TEST(TokenizerFiles, EqualTheirTokenizerJson) {
  SlowFiles files;
  Json decoder = Json::object();
  for (const Json& token : files.json["added_tokens"])
    decoder[std::to_string(token["id"].get<int>())] = token;
  testing::write_file(files.folder / "tokenizer_config.json", Json{{"added_tokens_decoder", decoder}}.dump());
  const Tokenizer slow = Tokenizer::load(files.folder.path());
  const Tokenizer fast = parse(files.json);
  for (const std::string text :
       {"Hello  world 12\n\n", "a <mask> b", "e\u0301 <tool><|end|>", "swordfish word"}) {
    EXPECT_EQ(slow.encode(text), fast.encode(text));
    EXPECT_EQ(slow.decode(slow.encode(text)), fast.decode(fast.encode(text)));
  }
}

TEST(TokenizerFiles, AddedTokensJsonHasIdsOnly) {
  SlowFiles files;
  testing::write_file(files.folder / "added_tokens.json", R"({"<|mask|>": 300})");
  const Tokenizer tokenizer = Tokenizer::load(files.folder.path());
  EXPECT_THAT(tokenizer.encode("<|mask|>"), ElementsAre(300));
  EXPECT_TRUE(tokenizer.is_special(300));
}

TEST(TokenizerFiles, TheConfigsFlagsWinOverAddedTokensJson) {
  SlowFiles files;
  testing::write_file(files.folder / "added_tokens.json", R"({"<tool>": 300})");
  testing::write_file(files.folder / "tokenizer_config.json",
                      R"({"added_tokens_decoder": {"300": {"content": "<tool>", "special": false}}})");
  EXPECT_FALSE(Tokenizer::load(files.folder.path()).is_special(300));
}

TEST(TokenizerFiles, Gpt2HasItsOwnPattern) {
  SlowFiles files;
  testing::write_file(files.folder / "tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})");
  const TokenizerParts gpt2 = read_tokenizer_files(files.folder.path());
  EXPECT_TRUE(gpt2.normalizer.empty());
  EXPECT_THAT(pretokenize(gpt2.pretokenizer, "a123", true).spans, ::testing::SizeIs(2));
  testing::write_file(files.folder / "tokenizer_config.json", R"({"tokenizer_class": "Qwen2Tokenizer"})");
  const TokenizerParts qwen2 = read_tokenizer_files(files.folder.path());
  EXPECT_THAT(pretokenize(qwen2.pretokenizer, "a123", true).spans, ::testing::SizeIs(4));
}

TEST(TokenizerFiles, NamesFileAndLine) {
  SlowFiles files;
  testing::write_file(files.folder / "merges.txt", "#version: 0.2\nh e\r\n\nhell\n");
  EXPECT_EQ(files.error(), (files.folder.path() / "merges.txt").string() +
                               " line 4 must be two tokens separated by one space");
  testing::write_file(files.folder / "merges.txt", "h \xFF\n");
  EXPECT_THAT(files.error(), HasSubstr("merges.txt is not valid UTF-8"));
  testing::write_file(files.folder / "merges.txt", "h z\n");
  EXPECT_THAT(files.error(), HasSubstr("merges.txt: merge 0 needs the token \"hz\""));
  testing::write_file(files.folder / "vocab.json", R"({"h": "0"})");
  EXPECT_THAT(files.error(), HasSubstr("vocab.json: the id of \"h\" is a string"));
  testing::write_file(files.folder / "vocab.json", "{");
  EXPECT_THAT(files.error(), HasSubstr("vocab.json is not valid JSON"));
}

TEST(TokenizerFiles, NamesWhatIsWrongInTheConfig) {
  SlowFiles files;
  testing::write_file(files.folder / "tokenizer_config.json", R"({"tokenizer_class": "BertTokenizer"})");
  EXPECT_THAT(files.error(),
              HasSubstr("tokenizer_config.json.tokenizer_class is \"BertTokenizer\"; without a"));
  testing::write_file(files.folder / "tokenizer_config.json",
                      R"({"added_tokens_decoder": {"x": {"content": "<s>"}}})");
  EXPECT_THAT(files.error(), HasSubstr("added_tokens_decoder: the key \"x\" is no id"));
  testing::write_file(files.folder / "tokenizer_config.json", R"({"added_tokens_decoder": []})");
  EXPECT_THAT(files.error(), HasSubstr("added_tokens_decoder is an array"));
  testing::write_file(files.folder / "tokenizer_config.json", "{}");
  testing::write_file(files.folder / "added_tokens.json", R"({"<s>": -1})");
  EXPECT_THAT(files.error(), HasSubstr("added_tokens.json: <s> is -1"));
}

}  // namespace
}  // namespace sinkscope
