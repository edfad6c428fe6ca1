#include "train/token_cache.h"

#include <gmock/gmock.h>
#include <sinkscope/error.h>

#include "train/small_run.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

class TokenCacheTest : public ::testing::Test {
 protected:
  const SmallRun run;
  const Tokenizer tokenizer = Tokenizer::load(run.folder / "tokenizer");
  const std::int32_t bos = *tokenizer.id_of("<b>"), eos = *tokenizer.id_of("<e>");
  const std::filesystem::path file = run.folder / "tokens.bin";

  TokenCache write(const std::string& lines) {
    testing::write_file(run.folder / "a.jsonl", lines);
    write_token_cache({run.folder / "a.jsonl"}, {tokenizer, {}, bos, eos}, 7, file, {});
    return TokenCache(file);
  }
  std::string text(std::span<const std::int32_t> ids) const { return tokenizer.decode(ids); }
};

TEST_F(TokenCacheTest, HoldsTextsAndAnswersBehindTheirPrompts) {
  const TokenCache cache = write("{\"text\": \"ab\"}\n{\"prompt\": \"1+1\", \"answer\": \"2\"}\n");
  ASSERT_EQ(cache.documents(), 2);
  EXPECT_EQ(cache.key(), 7U);
  EXPECT_EQ(text(cache.document(0).ids), "<b>ab<e>");
  EXPECT_EQ(cache.document(0).prompt_length, 0);
  const TokenDocument answer = cache.document(1);
  EXPECT_EQ(text(answer.ids), "<b>1+1\n2<e>");
  EXPECT_EQ(text(answer.ids.subspan(static_cast<std::size_t>(answer.prompt_length))), "2<e>");
  EXPECT_EQ(cache.tokens(), 4 + 7);
}

TEST_F(TokenCacheTest, APromptGoesThroughTheTemplate) {
  testing::write_file(run.folder / "tokenizer/chat_template.jinja",
                      "{{ bos_token }}Q: {{ messages[0]['content'] }} A:");
  const TextEncoder encoder{tokenizer, choose_chat_template(run.folder / "tokenizer", "llada"), bos, eos};
  std::int64_t prompt_length = 0;
  EXPECT_EQ(text(encode_document(encoder, "1+1", "2", prompt_length)), "<b>Q: 1+1 A:2<e>");
  EXPECT_EQ(prompt_length, 10);
}

TEST_F(TokenCacheTest, BrokenFilesAreRefused) {
  write("{\"text\": \"ab\"}\n");
  const std::string whole = testing::content_of(file);
  const auto open = [&] { const TokenCache cache(file); };
  for (std::size_t cut = 0; cut < whole.size(); cut += 3) {
    testing::write_file(file, whole.substr(0, cut));
    EXPECT_THROW(open(), Error) << cut;
  }
  for (std::size_t place = 8; place < whole.size() - 16; ++place) {  // all but the ids themselves
    if (place >= 24 && place < 32) continue;                         // the key may be any
    std::string broken = whole;
    broken[place] = static_cast<char>(broken[place] ^ 0x55);
    testing::write_file(file, broken);
    EXPECT_THROW(open(), Error) << place;
  }
}

TEST_F(TokenCacheTest, TextsThatAreWrongAreNamedAndLeaveNothing) {
  EXPECT_THAT([&] { write("{\"text\": 1}\n"); }, ThrowsMessage<Error>(HasSubstr("a.jsonl line 1")));
  EXPECT_THAT([&] { write("\n"); }, ThrowsMessage<Error>(HasSubstr("holds no text to train on")));
  for (const auto& entry : std::filesystem::directory_iterator(run.folder.path()))
    EXPECT_FALSE(entry.path().filename().string().starts_with("tokens.bin")) << entry.path();
}

}  // namespace
}  // namespace sinkscope
