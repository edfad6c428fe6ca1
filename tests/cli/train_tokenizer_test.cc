#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::string prose = std::string(SINKSCOPE_SOURCE_DIR) + "/docs/methods.md";

class TrainTokenizer : public ::testing::Test {
 protected:
  // Trains on this project's own prose; returns the tokenizer.json.
  std::string train(const std::string& name, std::vector<std::string> options = {}) {
    options.insert(options.begin(),
                   {"train-tokenizer", prose, "--vocab-size", "600", "--quiet", "--out", folder / name});
    const auto result = run_program(options);
    EXPECT_EQ(result.status, 0) << result.error;
    EXPECT_EQ(result.error, "");
    return content_of(folder / name / "tokenizer.json");
  }
  json ids(const std::string& name, const std::string& text) const {
    return json::parse(run_program({"tokenize", folder / name, "--text", text}).out);
  }
  TemporaryFolder folder;
};

TEST_F(TrainTokenizer, TheFolderGivesTextsBack) {
  train("made");
  const std::string text = content_of(prose) + "\n\n\tnaïve 日本語 \U0001F600 1234567 <|mdm_mask|>\r\n";
  const json encoded = ids("made", text);
  EXPECT_LT(encoded.size(), text.size() * 2 / 3);
  const auto decoded = run_program({"tokenize", folder / "made", "--decode", "--text", encoded.dump()});
  EXPECT_EQ(json::parse(decoded.out), text);
  EXPECT_EQ(ids("made", "1234567").size(), 7U);
  EXPECT_EQ(
      ids("made", "<|startoftext|><|endoftext|><|mdm_mask|><|start_header_id|><|end_header_id|><|eot_id|>"),
      json::parse("[0,1,2,3,4,5]"));
}

TEST_F(TrainTokenizer, SaysWhatItMade) {
  const auto result =
      run_program({"train-tokenizer", prose, "--vocab-size", "300", "--out", folder / "t", "--json"});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_THAT(result.error, HasSubstr("300 tokens (6 special, 256 bytes, 38 merges)"));
  const json made = json::parse(result.out);
  EXPECT_EQ(made["vocab_size"], 300);
  EXPECT_EQ(made["merges"], 38);
  EXPECT_EQ(made["special_tokens"]["mask"], (json{{"id", 2}, {"text", "<|mdm_mask|>"}}));
  EXPECT_EQ(made["special_tokens"]["pad"]["id"], 1);
  EXPECT_EQ(made["bytes"], std::filesystem::file_size(prose));
  EXPECT_LT(made["tokens"], made["bytes"]);
  const json config = json::parse(content_of(folder / "t/tokenizer_config.json"));
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  const json file = json::parse(content_of(folder / "t/tokenizer.json"));
  EXPECT_EQ(file["model"]["vocab"].size(), 300U);
  EXPECT_EQ(file["model"]["merges"].size(), 38U);
}

TEST_F(TrainTokenizer, EveryOptionChangesWhatItSays) {
  const std::string plain = train("plain");
  EXPECT_EQ(train("threads", {"--threads", "3"}), plain);
  EXPECT_EQ(train("named", {"--pattern", "qwen2", "--min_frequency", "2", "--pad", "<|endoftext|>"}), plain);
  EXPECT_NE(train("often", {"--min-frequency", "60"}), plain);
  EXPECT_LT(json::parse(content_of(folder / "often/tokenizer.json"))["model"]["vocab"].size(), 600U);
  train("gpt2", {"--pattern", "gpt2"});
  train("regex", {"--pattern", "[^0-9]+|[0-9]+"});
  EXPECT_NE(content_of(folder / "gpt2/tokenizer.json"), plain);
  EXPECT_THAT(content_of(folder / "regex/tokenizer.json"), HasSubstr("[^0-9]+|[0-9]+"));
  train("special", {"--bos", "<s>", "--eos=</s>", "--pad", "<pad>", "--mask", "", "--special-tokens",
                    "<user>", "--special-tokens", "<model>"});
  EXPECT_EQ(ids("special", "<s></s><pad><user><model>"), json::parse("[0,1,2,3,4]"));
  EXPECT_GT(ids("special", "<|mdm_mask|>").size(), 1U);
  const json config = json::parse(content_of(folder / "special/tokenizer_config.json"));
  EXPECT_EQ(config["pad_token"], "<pad>");
  EXPECT_FALSE(config.contains("mask_token"));
  train("none", {"--special-tokens", ""});
  EXPECT_GT(ids("none", "<|eot_id|>").size(), 1U);
}

TEST_F(TrainTokenizer, TooLittleTextIsSaid) {
  write_file(folder / "little.txt", "aaab aaab");
  const auto result =
      run_program({"train-tokenizer", folder / "little.txt", "--vocab-size", "4096", "--out", folder / "t"});
  ASSERT_EQ(result.status, 0) << result.error;
  // a a and aa a, then aaa b; the space before the second word stands once
  EXPECT_THAT(result.error, HasSubstr("only 265 of 4096 tokens: after 3 merges no pair stands 2 times"));
}

TEST_F(TrainTokenizer, WrongUseIsNamed) {
  const std::string out = folder / "out";
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"--vocab-size", "300", "--out", out}, "FILES"},
      {{prose, "--out", out}, "--vocab-size"},
      {{prose, "--vocab-size", "300"}, "--out"},
      {{prose, "--vocab-size", "300", "--out", ""}, "--out is empty"},
      {{prose, "--vocab-size", "261", "--out", out}, "from 262 (256 bytes and 6 special tokens)"},
      {{prose, "--vocab-size", "4194305", "--out", out}, "to 4194304"},
      {{prose, "--vocab-size", "many", "--out", out}, "'many'"},
      {{prose, "--vocab-size", "300", "--min-frequency", "0", "--out", out}, "--min-frequency is 0"},
      {{prose, "--vocab-size", "300", "--pattern", "gpt5", "--out", out}, "qwen2, llama3, gpt2"},
      {{prose, "--vocab-size", "300", "--pattern", "(a", "--out", out}, "does not compile"},
      {{prose, "--vocab-size", "300", "--mask", "m", "--out", out}, "special token \"m\""},
      {{prose, "--vocab-size", "300", "--threads", "0", "--out", out}, "--threads"}};
  for (auto [arguments, named] : table) {
    arguments.insert(arguments.begin(), "train-tokenizer");
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 2) << named << result.error;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_EQ(std::count(result.error.begin(), result.error.end(), '\n'), 1) << result.error;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST_F(TrainTokenizer, BrokenInputLeavesNothingBehind) {
  write_file(folder / "latin.txt", "caf\xE9\n");
  write_file(folder / "empty.txt", "");
  write_file(folder / "taken", "mine");
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{folder / "latin.txt", "--out", folder / "out"}, "latin.txt line 1 is not UTF-8 at byte 3"},
      {{folder / "empty.txt", "--out", folder / "out"}, "empty.txt holds no text"},
      {{prose, folder / "none.txt", "--out", folder / "out"}, "none.txt"},
      {{folder.path(), "--out", folder / "out"}, "is a directory"},
      {{prose, "--out", folder / "taken"}, "taken exists already"}};
  for (auto [arguments, named] : table) {
    arguments.insert(arguments.begin(), {"train-tokenizer", "--vocab-size", "300"});
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 1) << named;
    EXPECT_THAT(result.error, HasSubstr(named));
    EXPECT_FALSE(std::filesystem::exists(folder / "out"));
  }
  EXPECT_EQ(content_of(folder / "taken"), "mine");
}

}  // namespace
}  // namespace sinkscope
