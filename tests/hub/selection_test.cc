#include "hub/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

namespace sinkscope {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<RemoteFile> files(const std::vector<std::string>& names) {
  std::vector<RemoteFile> result;
  for (const std::string& name : names) result.push_back({.name = name, .size = 1, .checksum = {}});
  return result;
}

std::vector<std::string> names(const std::vector<RemoteFile>& chosen) {
  std::vector<std::string> result;
  for (const RemoteFile& file : chosen) result.push_back(file.name);
  return result;
}

const auto repository =
    files({"README.md", "config.json", "merges.txt", "model-00001-of-00002.safetensors", "model.gguf",
           "onnx/config.json", "onnx/model.onnx", "pytorch_model.bin", "tokenizer.json"});

std::string error_of(const std::vector<std::string>& include, const std::vector<std::string>& exclude) {
  try {
    select_files(repository, include, exclude, "a/b");
  } catch (const Error& error) {
    return error.what();
  }
  return "(no Error)";
}

TEST(Selection, ByDefaultWhatTheProgramReads) {
  const Selection selection = select_files(repository, {}, {}, "a/b");
  EXPECT_THAT(names(selection.chosen),
              ElementsAre("config.json", "merges.txt", "model-00001-of-00002.safetensors", "tokenizer.json"));
  EXPECT_EQ(selection.chosen.size() + selection.left_out.size(), repository.size());
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "generation_config.json",
                           "tokenizer_config.json", "vocab.json", "added_tokens.json",
                           "special_tokens_map.json", "chat_template.jinja"})
    EXPECT_TRUE(is_read_by_us(name)) << name;
  for (const char* name : {"model.bin", "consolidated.00.safetensors", "model.fp16.safetensors", "a.py",
                           "x.pth", "original/model.safetensors"})
    EXPECT_FALSE(is_read_by_us(name)) << name;
}

TEST(Selection, IncludeReplacesTheDefaultAndExcludeTakesAway) {
  EXPECT_THAT(names(select_files(repository, {"*.gguf", "README.md"}, {}, "a/b").chosen),
              ElementsAre("README.md", "model.gguf"));
  EXPECT_THAT(names(select_files(repository, {}, {"*.safetensors", "merges*"}, "a/b").chosen),
              ElementsAre("config.json", "tokenizer.json"));
  EXPECT_THAT(names(select_files(repository, {"*.json"}, {"onnx/"}, "a/b").chosen),
              ElementsAre("config.json", "tokenizer.json"));
}

TEST(Selection, PatternsAreThoseOfHuggingfaceHub) {
  EXPECT_TRUE(matches("*.json", "onnx/config.json"));
  EXPECT_TRUE(matches("onnx/", "onnx/a/b"));
  EXPECT_TRUE(matches("model-0000[12]-of-?????.safetensors", "model-00001-of-00002.safetensors"));
  EXPECT_FALSE(matches("config", "config.json"));
  EXPECT_FALSE(matches("*.JSON", "config.json"));
}

TEST(Selection, APatternThatMatchesNothingIsNamed) {
  EXPECT_THAT(error_of({"*.json", "*.sfetensors"}, {}),
              AllOf(HasSubstr("--include \"*.sfetensors\""), HasSubstr("a/b"), HasSubstr("README.md")));
  EXPECT_THAT(error_of({}, {"*"}), HasSubstr("no file of a/b is to be fetched"));
}

}  // namespace
}  // namespace sinkscope
