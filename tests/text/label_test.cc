#include "text/label.h"

#include "base/files.h"
#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

Tokenizer load(const char* name) {
  const std::string path = std::string(SINKSCOPE_TEST_DATA) + "/tokenizers/" + name;
  return Tokenizer::parse(read_file(path), path);
}

TEST(Printable, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(printable(" a\n\t\r"), "␣a\\n\\t\\r");
  EXPECT_EQ(printable(std::string("\0\x1B\x7F", 3)), "\\x00\\x1B\\x7F");
  EXPECT_EQ(printable("\u00A0\u200B\u202E\uFEFF"), "\\u00A0\\u200B\\u202E\\uFEFF");
  EXPECT_EQ(printable("\\n"), "\\\\n");
}

TEST(Printable, LeavesReadableTextAlone) {
  for (const char* text : {"Seán", "कंगण", "株式", "אבג", "e\u0301", "<&\"'>"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, GroupsBytesThatAreNoCharacter) {
  EXPECT_EQ(printable("\xF0\x9F"), "<F0 9F>");
  EXPECT_EQ(printable("\xA6\x8A!"), "<A6 8A>!");
  EXPECT_EQ(printable("a\xE6\xA0 \xFF"), "a<E6 A0>␣<FF>");
}

TEST(Label, PartsOfAnEmojiAreBytes) {
  const Tokenizer tokenizer = load("byte_level.json");
  std::vector<std::string> labels;
  for (const auto id : tokenizer.encode(" 🦊\n<|start|>")) labels.push_back(tokenizer.label(id));
  EXPECT_THAT(labels, testing::ElementsAre("␣", "<F0 9F>", "<A6>", "<8A>", "\\n", "<|start|>"));
}

TEST(Label, SentencePieceSpacesAndBytes) {
  const Tokenizer tokenizer = load("sentencepiece.json");
  std::vector<std::string> labels;
  for (const auto id : tokenizer.encode("hello é\n🦊")) labels.push_back(tokenizer.label(id));
  EXPECT_THAT(labels, testing::ElementsAre("␣hello", "␣", "é", "\\n", "<F0>", "<9F>", "<A6>", "<8A>"));
}

TEST(Label, IdsWithoutATokenHavePlaceholders) {
  const Tokenizer tokenizer = parse(small_tokenizer());
  EXPECT_EQ(tokenizer.label(50400), "<id:50400>");
  EXPECT_EQ(tokenizer.label(-1), "<id:-1>");
  EXPECT_EQ(tokenizer.label(6), "<s>");
}

}  // namespace
}  // namespace sinkscope
