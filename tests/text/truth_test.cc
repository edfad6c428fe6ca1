// What the Hugging Face libraries give for some 640 texts each, for every tokenizer at hand.
#include <gtest/gtest.h>
#include <sinkscope/tokenizer.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

struct TruthCase {
  const char* truth;      // file under shared/truth
  const char* tokenizer;  // folder under shared
};

// Readable names in the test list.
void PrintTo(const TruthCase& c, std::ostream* out) { *out << c.tokenizer; }

void expect_truth(const Tokenizer& tokenizer, const fs::path& truth_file) {
  std::ifstream lines(truth_file);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json truth = parse_json(line, truth_file.string());
    const auto text = truth.at("text").get<std::string>();
    const auto ids = truth.at("ids").get<std::vector<std::int32_t>>();
    const auto with_special = truth.value("ids_with_special", ids);
    EXPECT_EQ(tokenizer.encode(text), ids) << text;
    EXPECT_EQ(tokenizer.encode(text, true), with_special) << text;
    EXPECT_EQ(tokenizer.decode(ids), truth.value("decoded", text)) << text;
  }
  EXPECT_GT(count, 600u);
}

class Truth : public ::testing::TestWithParam<TruthCase> {};

TEST_P(Truth, IdsAndTextAgree) {
  const fs::path shared = SINKSCOPE_SHARED_DIR;
  const fs::path truth = shared / "truth" / GetParam().truth;
  const fs::path folder = shared / GetParam().tokenizer;
  if (!fs::exists(truth) || !fs::exists(folder)) GTEST_SKIP() << "needs " << truth << " and " << folder;
  expect_truth(Tokenizer::load(folder), truth);
}

INSTANTIATE_TEST_SUITE_P(Shared, Truth,
                         ::testing::Values(TruthCase{"qwen3.jsonl", "tokenizers/qwen3"},
                                           TruthCase{"llama3_1.jsonl", "tokenizers/llama3_1"},
                                           TruthCase{"llada-style.jsonl", "tokenizers/llada-style"},
                                           TruthCase{"dream-derived.jsonl", "tokenizers/dream-derived"},
                                           TruthCase{"tiny-llada.jsonl", "models/tiny-llada"},
                                           TruthCase{"stories260k.jsonl", "models/stories260k"}));

// Dream publishes vocab.json and merges.txt only.
TEST(TruthWithoutTokenizerJson, IdsAndTextAgree) {
  const fs::path shared = SINKSCOPE_SHARED_DIR;
  const fs::path truth = shared / "truth" / "dream-derived.jsonl";
  const fs::path folder = shared / "tokenizers" / "dream-derived";
  if (!fs::exists(truth) || !fs::exists(folder)) GTEST_SKIP() << "needs " << truth << " and " << folder;
  const testing::TemporaryFolder slow;
  fs::copy_file(folder / "vocab.json", slow.path() / "vocab.json");
  fs::copy_file(folder / "merges.txt", slow.path() / "merges.txt");
  std::ifstream file(folder / "tokenizer.json");
  const Json fast = Json::parse(file);
  Json decoder = Json::object();
  for (const Json& token : fast.at("added_tokens"))
    decoder[std::to_string(token.at("id").get<int>())] = token;
  testing::write_file(slow / "tokenizer_config.json",
                      Json{{"tokenizer_class", "Qwen2Tokenizer"}, {"added_tokens_decoder", decoder}}.dump());
  expect_truth(Tokenizer::load(slow.path()), truth);
}

}  // namespace
}  // namespace sinkscope
