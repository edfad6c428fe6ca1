#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

TEST(Tokenize, TextToIdsAndBack) {
  const auto encoded =
      run_program({"tokenize", "tiny-llada", "--text", "Tom has 3 apples.", "--text", "Héllo\n"});
  ASSERT_EQ(encoded.status, 0) << encoded.error;
  std::istringstream lines(encoded.out);
  std::string first, second;
  std::getline(lines, first);
  std::getline(lines, second);
  EXPECT_TRUE(json::parse(first).is_array());
  const auto decoded = run_program({"tokenize", "tiny-llada", "--decode", "--text", first, "--text", second});
  EXPECT_EQ(decoded.out, "\"Tom has 3 apples.\"\n\"Héllo\\n\"\n");
}

TEST(Tokenize, FilesHoldTextsOrIds) {
  const TemporaryFolder folder;
  write_file(folder / "texts.jsonl", "{\"text\": \"one two\"}\n\n{\"text\": \"\"}\n");
  const auto encoded = run_program({"tokenize", "tiny-llada", "--file", folder / "texts.jsonl"});
  ASSERT_EQ(encoded.status, 0) << encoded.error;
  write_file(folder / "ids.jsonl", encoded.out);
  const auto decoded = run_program({"tokenize", "tiny-llada", "--decode", "--file", folder / "ids.jsonl"});
  EXPECT_EQ(decoded.out, "\"one two\"\n\"\"\n");
}

// Truth of the Hugging Face library for every tokenizer that is there.
TEST(Tokenize, MatchesTheTruthFiles) {
  const std::filesystem::path shared = SINKSCOPE_SHARED_DIR;
  if (!std::filesystem::exists(shared / "truth"))
    GTEST_SKIP() << "the truth files in " << shared << " are not there";
  for (const auto& entry : std::filesystem::directory_iterator(shared / "truth")) {
    const std::string name = entry.path().stem();
    const auto model = std::filesystem::exists(shared / "tokenizers" / name) ? shared / "tokenizers" / name
                                                                             : shared / "models" / name;
    for (const bool special : {false, true}) {
      std::vector<std::string> arguments{"tokenize", model.string(), "--file", entry.path().string()};
      if (special) arguments.push_back("--special");
      const auto result = run_program(arguments);
      ASSERT_EQ(result.status, 0) << name << result.error;
      std::istringstream truth(testing::content_of(entry.path())), found(result.out);
      std::string expected, line;
      for (int number = 1; std::getline(truth, expected); ++number) {
        ASSERT_TRUE(std::getline(found, line));
        const json object = json::parse(expected);
        ASSERT_EQ(json::parse(line),
                  special && object.contains("ids_with_special") ? object["ids_with_special"] : object["ids"])
            << name << " line " << number;
      }
    }
  }
}

TEST(Tokenize, BrokenInputIsNamed) {
  const TemporaryFolder folder;
  write_file(folder / "bad.jsonl", "{\"text\": \"a\"}\n{\"text\": 5}\n");
  write_file(folder / "ids.jsonl", "[1, \"2\"]\n");
  const std::vector<std::pair<std::vector<std::string>, std::string>> table{
      {{"tokenize", "tiny-llada", "--file", folder / "bad.jsonl"}, "line 2"},
      {{"tokenize", "tiny-llada", "--decode", "--file", folder / "ids.jsonl"}, "line 1"},
      {{"tokenize", "tiny-llada", "--decode", "--text", "[-1]"}, "-1"},
      {{"tokenize", "tiny-llada", "--decode", "--text", "{}"}, "list of ids"},
      {{"tokenize", "tiny-llada", "--file", folder / "none"}, "none"},
      {{"tokenize", folder.path().string(), "--text", "a"}, "tokenizer.json"}};
  for (const auto& [arguments, named] : table) {
    const auto result = run_program(arguments);
    EXPECT_EQ(result.status, 1) << named;
    EXPECT_THAT(result.error, HasSubstr(named));
  }
}

TEST(Inspect, SaysWhatTheCheckpointIs) {
  const auto text = run_program({"inspect", "tiny-llada"});
  ASSERT_EQ(text.status, 0) << text.error;
  EXPECT_THAT(text.out, HasSubstr("llada (LLaDAModelLM)"));
  const auto machine_readable = run_program({"inspect", "tiny-llada", "--json"});
  const json found = json::parse(machine_readable.out);
  EXPECT_EQ(found["layers"], 6);
  EXPECT_EQ(found["special_tokens"]["mask"]["id"], 2047);
  EXPECT_EQ(found["dtype"], "BF16");
  EXPECT_EQ(found["parameters"], 3443136);
  EXPECT_GT(found["memory"]["f32"]["peak"], found["memory"]["bf16"]["peak"]);
}

TEST(Inspect, RefusesWhatIsNotSupportedWithTheReason) {
  const TemporaryFolder folder;
  const std::string golden = std::string(SINKSCOPE_TEST_DATA) + "/golden/llada-random";
  std::filesystem::copy(golden + "/model.safetensors", folder / "model.safetensors");
  json config = json::parse(testing::content_of(golden + "/config.json"));
  config["alibi"] = true;
  write_file(folder / "config.json", config.dump());
  const auto result = run_program({"inspect", folder.path().string()});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error, HasSubstr("alibi"));
}

}  // namespace
}  // namespace sinkscope
