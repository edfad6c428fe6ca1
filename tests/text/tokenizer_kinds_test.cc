// Small tokenizers of the kinds that checkpoints have, against the ids and texts of the Hugging Face library
// (tests/data/tokenizers/kinds.jsonl: a file of that folder, a JSON Patch on it, and texts).
#include <gtest/gtest.h>
#include <sinkscope/tokenizer.h>

#include <fstream>

#include "base/json.h"

namespace sinkscope {
namespace {

const std::string folder = std::string(SINKSCOPE_TEST_DATA) + "/tokenizers/";

TEST(TokenizerKinds, IdsAndTextsAgree) {
  std::ifstream lines(folder + "kinds.jsonl");
  std::size_t kinds = 0;
  for (std::string line; std::getline(lines, line); ++kinds) {
    const Json kind = Json::parse(line);
    const Json base = read_json_file(folder + kind["base"].get<std::string>());
    const Tokenizer tokenizer = Tokenizer::parse(base.patch(kind["patch"]).dump(), kind["name"]);
    for (const Json& entry : kind["cases"]) {
      const auto text = entry["text"].get<std::string>();
      const auto ids = tokenizer.encode(text, /*add_special=*/true);
      EXPECT_EQ(ids, entry["ids"].get<std::vector<std::int32_t>>()) << kind["name"] << ": " << text;
      // The library's own text of the ids without the special ones around.
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), entry["decoded"].get<std::string>())
          << kind["name"] << ": " << text;
    }
  }
  EXPECT_EQ(kinds, 31u);
}

}  // namespace
}  // namespace sinkscope
