#include "text/decoder.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::HasSubstr;

Decoder read(const Json& json) { return read_decoder(JsonPlace{json, "FILE: decoder"}); }
std::string decoded(const Json& json, const std::vector<std::string>& tokens) {
  return decode_tokens(read(json), tokens);
}
std::string read_error(const Json& json) {
  try {
    read(json);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Decoder, ByteLevelJoinsBytesOverTokens) {
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"HÃ", "©", "Ġx"}), "Hé x");
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"ð", "Ł", "x"}), "\uFFFDx");
  // A token with other characters stands for itself.
  EXPECT_EQ(decoded({{"type", "ByteLevel"}}, {"Ġa", "<|日|>"}), " a<|日|>");
}

TEST(Decoder, ByteFallbackGivesAReplacementForEachBadByte) {
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xC3>", "<0xa9>", "x"}), "éx");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xF0>", "<0x9F>", "x"}), "\uFFFD\uFFFDx");
  EXPECT_EQ(decoded({{"type", "ByteFallback"}}, {"<0xZZ>"}), "<0xZZ>");
}

TEST(Decoder, StripCountsFromTheEndsOfEachToken) {
  EXPECT_EQ(decoded({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}, {"  a ", " b"}),
            " a b");
  EXPECT_EQ(decoded({{"type", "Strip"}, {"content", "é"}, {"start", 0}, {"stop", 2}}, {"aééé"}), "aé");
}

TEST(Decoder, LlamaTakesOneSpaceOffTheText) {
  const Json llama = {{"type", "Sequence"},
                      {"decoders",
                       {{{"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}},
                        {{"type", "ByteFallback"}},
                        {{"type", "Fuse"}},
                        {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}};
  EXPECT_EQ(decoded(llama, {"▁▁a", "▁b"}), " a b");
}

TEST(Decoder, MetaspaceDropsTheFirstTokensMarks) {
  Json json = {{"type", "Metaspace"}, {"replacement", "▁"}, {"prepend_scheme", "always"}};
  EXPECT_EQ(decoded(json, {"▁a", "▁b"}), "a b");
  json["prepend_scheme"] = "never";
  EXPECT_EQ(decoded(json, {"▁a", "▁b"}), " a b");
}

TEST(Decoder, RefusesByFileAndComponent) {
  EXPECT_EQ(read_error({{"type", "CTC"}}), "FILE: decoder: the decoder \"CTC\" is not supported");
  EXPECT_THAT(read_error({{"type", "Strip"}, {"content", " "}, {"start", -1}, {"stop", 0}}),
              HasSubstr("decoder.start is -1"));
  EXPECT_THAT(read_error({{"type", "Sequence"}, {"decoders", 3}}), HasSubstr("an array would be right"));
}

}  // namespace
}  // namespace sinkscope
