#include "text/post_processor.h"

#include "text/small_tokenizer.h"

namespace sinkscope {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Json special(const char* name) { return {{"SpecialToken", {{"id", name}, {"type_id", 0}}}}; }
const Json text_a = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};

Json template_of(const Json& single) {
  return {{"type", "TemplateProcessing"},
          {"single", single},
          {"special_tokens", {{"<s>", {{"id", "<s>"}, {"ids", {6}}, {"tokens", {"<s>"}}}}}}};
}

TEST(PostProcessor, PutsSpecialTokensAroundWhenAsked) {
  const Tokenizer tokenizer = parse(small_with(
      "/post_processor", template_of(Json::array({special("<s>"), text_a, special("<s>"), special("<s>")}))));
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre(1));
  EXPECT_THAT(tokenizer.encode("a", true), ElementsAre(6, 1, 6, 6));
  EXPECT_THAT(tokenizer.encode("", true), ElementsAre(6, 6, 6));
}

TEST(PostProcessor, SequencesAndByteLevel) {
  const Json json = {
      {"type", "Sequence"},
      {"processors", {{{"type", "ByteLevel"}}, template_of(Json::array({special("<s>"), text_a}))}}};
  EXPECT_THAT(parse(small_with("/post_processor", json)).encode("a", true), ElementsAre(6, 1));
}

TEST(PostProcessor, RefusesByFileAndComponent) {
  const auto error = [](const Json& json) { return load_error(small_with("/post_processor", json)); };
  EXPECT_EQ(error({{"type", "RobertaProcessing"}}),
            "DIR/tokenizer.json: post_processor: the post-processor \"RobertaProcessing\" is not supported");
  EXPECT_THAT(error(template_of(Json::array({special("<t>"), text_a}))),
              HasSubstr("special_tokens has no \"<t>\""));
  EXPECT_THAT(error(template_of(Json::array({special("<s>")}))), HasSubstr("the Sequence A exactly once"));
  EXPECT_THAT(error(template_of(Json::array({text_a, text_a}))), HasSubstr("the Sequence A exactly once"));
  Json huge = template_of(Json::array({special("<s>"), text_a}));
  huge["special_tokens"]["<s>"]["ids"] = {1e18};
  EXPECT_THAT(error(huge), HasSubstr("ids[0] is"));
}

}  // namespace
}  // namespace sinkscope
