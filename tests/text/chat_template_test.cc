#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include "base/json.h"
#include "support/temporary_folder.h"

namespace sinkscope {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const Message hi = {"user", "Hi there"};
const Message brief = {"system", "Be brief."};

std::string templated(const ChatTemplate& chat, const std::vector<Message>& messages) {
  return apply_chat_template(chat, messages);
}

std::string choose_error(const std::filesystem::path& folder, std::string_view family) {
  try {
    choose_chat_template(folder, family);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string templated_error(const ChatTemplate& chat, const std::vector<Message>& messages) {
  try {
    (void)templated(chat, messages);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

struct NamedCase {
  const char* name;
  std::string plain;   // hi alone
  std::string system;  // brief, then hi
};
void PrintTo(const NamedCase& c, std::ostream* out) { *out << c.name; }

const std::string llama_user =
    "<|start_header_id|>user<|end_header_id|>\n\nHi "
    "there<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n";
const std::string llama_system = "<|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>";
const std::string mmada_user =
    "<|start_header_id|>user<|end_header_id|>\nHi "
    "there<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n";
const std::string mmada_system = "<|start_header_id|>system<|end_header_id|>\nBe brief.<|eot_id|>";
const std::string im_user = "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n";
const std::string im_system = "<|im_start|>system\nBe brief.<|im_end|>\n";
const std::string im_default = "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n";

const NamedCase named_cases[] = {
    {"llada", "<|startoftext|>" + llama_user, "<|startoftext|>" + llama_system + llama_user},
    {"mmada", "<|startoftext|>" + mmada_user, "<|startoftext|>" + mmada_system + mmada_user},
    {"llama-3", "<|begin_of_text|>" + llama_user, "<|begin_of_text|>" + llama_system + llama_user},
    {"llama-2", "<s>[INST] Hi there [/INST]", "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi there [/INST]"},
    {"mistral", "<s>[INST] Hi there[/INST]", "<s>[INST] Be brief.\n\nHi there[/INST]"},
    {"chatml", im_user, im_system + im_user},
    {"qwen3", im_user, im_system + im_user},
    {"qwen2", im_default + im_user, im_system + im_user},
    {"dream", im_default + im_user, im_system + im_user},
    {"llada-moe",
     "<role>SYSTEM</role>detailed thinking off<|role_end|><role>HUMAN</role>Hi "
     "there<|role_end|><role>ASSISTANT</role>",
     "<role>SYSTEM</role>Be brief.\ndetailed thinking off<|role_end|><role>HUMAN</role>Hi there<|role_end|>"
     "<role>ASSISTANT</role>"},
};

class Named : public ::testing::TestWithParam<NamedCase> {};

TEST_P(Named, WritesTheFamilysFormat) {
  const ChatTemplate chat = chat_template_named(GetParam().name);
  EXPECT_EQ(templated(chat, {hi}), GetParam().plain);
  EXPECT_EQ(templated(chat, {brief, hi}), GetParam().system);
}

INSTANTIATE_TEST_SUITE_P(Families, Named, ::testing::ValuesIn(named_cases));

TEST(ChatTemplateNamed, AnswersTakeTheirPlaceBetweenTheQuestions) {
  const std::vector<Message> talk{hi, {"assistant", " Yes? "}, {"user", "Why?"}};
  EXPECT_EQ(templated(chat_template_named("llama-2"), talk),
            "<s>[INST] Hi there [/INST] Yes? </s><s>[INST] Why? [/INST]");
  EXPECT_EQ(templated(chat_template_named("mistral"), talk),
            "<s>[INST] Hi there[/INST] Yes?</s>[INST] Why?[/INST]");
  EXPECT_EQ(templated(chat_template_named("mistral-v0.1"), {hi, {"assistant", "Yes?"}, {"user", "Why?"}}),
            "<s>[INST] Hi there [/INST]Yes?</s> [INST] Why? [/INST]");
  EXPECT_EQ(templated(chat_template_named("chatml"), talk),
            "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n Yes? <|im_end|>\n"
            "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
}

TEST(ChatTemplateNamed, MistralsFirstHasNoSystemRole) {
  EXPECT_THAT(
      templated_error(chat_template_named("mistral-v0.1"), {brief, hi}),
      ::testing::EndsWith("the chat template refuses these messages: mistral-v0.1 has no role system"));
}

TEST(ChatTemplateNamed, LladaTrimsContentAndPutsBosOnce) {
  EXPECT_EQ(templated(chat_template_named("llada"),
                      {{"system", " \nBe brief.\x1C\u3000"}, {"user", "a b"}, {"assistant", ""}}),
            "<|startoftext|>" + llama_system +
                "<|start_header_id|>user<|end_header_id|>\n\na b<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>"
                "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChatTemplateNamed, TakesTheTokensOfTheCheckpoint) {
  const testing::TemporaryFolder folder;
  const auto bos = [&] {
    const std::string text = templated(chat_template_named("llada", folder.path()), {hi});
    return text.substr(0, text.find("<|start_header_id|>"));
  };
  EXPECT_EQ(bos(), "<|startoftext|>");
  testing::write_file(folder / "special_tokens_map.json", R"({"bos_token": "<C>"})");
  EXPECT_EQ(bos(), "<C>");
  testing::write_file(folder / "tokenizer_config.json", R"({"bos_token": "<A>"})");
  EXPECT_EQ(bos(), "<A>");
  testing::write_file(folder / "tokenizer_config.json",
                      R"({"bos_token": {"content": "<B>", "special": true}})");
  EXPECT_EQ(bos(), "<B>");
  testing::write_file(folder / "tokenizer_config.json", R"({"bos_token": 7})");
  EXPECT_THAT(choose_error(folder.path(), "llada"),
              HasSubstr("bos_token is an integer; a string would be right"));
}

TEST(ChatTemplateNamed, ListsTheNamesThereAre) {
  try {
    chat_template_named("llama-4");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(
        error.what(),
        "there is no chat template \"llama-4\"; llada, mmada, llada-moe, dream, llama-3, llama-2, mistral, "
        "mistral-v0.1, chatml, qwen2, qwen3 would be right");
  }
}

TEST(ChooseChatTemplate, TheFamilyDecidesWhereTheFolderIsSilent) {
  const testing::TemporaryFolder folder;
  for (const char* family : {"llada", "mmada", "llada-moe", "dream", "qwen2", "qwen3"})
    EXPECT_EQ(choose_chat_template(folder.path(), family).name, family);
  for (const char* family : {"llama", "mistral"})
    EXPECT_THAT(choose_error(folder.path(), family),
                StartsWith(folder.path().string() +
                           " has no chat template, as base models have none, and the family " + family +
                           " has no format of its own; use --raw to send prompts without a template, or "
                           "--template NAME for one of llada, mmada, "));
}

TEST(ChooseChatTemplate, TheFoldersProgramRuns) {
  const testing::TemporaryFolder folder;
  const std::string program =
      "{{ bos_token }}{% for m in messages %}({{ m.role }}){{ m.content }}{% endfor %}";
  testing::write_file(folder / "tokenizer_config.json",
                      Json{{"chat_template", program}, {"bos_token", "<B>"}}.dump());
  EXPECT_EQ(templated(choose_chat_template(folder.path(), "other"), {brief, hi}),
            "<B>(system)Be brief.(user)Hi there");
  // MMaDA's scripts put their own in its place.
  EXPECT_EQ(choose_chat_template(folder.path(), "mmada").name, "mmada");
}

TEST(ChooseChatTemplate, TheJinjaFileComesFirst) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "tokenizer_config.json", R"({"chat_template": "config"})");
  testing::write_file(folder / "chat_template.jinja", "file\n");
  EXPECT_EQ(templated(choose_chat_template(folder.path(), "llada"), {}), "file");
}

TEST(ChooseChatTemplate, OfSeveralTemplatesTheDefaultCounts) {
  const testing::TemporaryFolder folder;
  Json list = {{{"name", "tool_use"}, {"template", "{{ tools }}"}},
               {{"name", "default"}, {"template", "right"}}};
  testing::write_file(folder / "tokenizer_config.json", Json{{"chat_template", list}}.dump());
  EXPECT_EQ(templated(choose_chat_template(folder.path(), "llada"), {}), "right");
  list.erase(1);
  testing::write_file(folder / "tokenizer_config.json", Json{{"chat_template", list}}.dump());
  EXPECT_THAT(choose_error(folder.path(), "llada"),
              HasSubstr("has no template named \"default\"; use --raw"));
}

TEST(ChooseChatTemplate, NamesTheLineOfAProgramThatIsNone) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "chat_template.jinja", "{{ bos_token }}\n{% import 'x' as y %}");
  EXPECT_THAT(
      choose_error(folder.path(), "llada"),
      StartsWith((folder.path() / "chat_template.jinja").string() +
                 " line 2: the statement {% import %} is not supported; use --raw to send prompts without a "
                 "template, or --template NAME for one of llada, "));
  testing::write_file(folder / "chat_template.jinja", "\xFF");
  EXPECT_THAT(choose_error(folder.path(), "llada"), HasSubstr("is not valid UTF-8"));
  testing::write_file(folder / "chat_template.jinja", std::string((1 << 20) + 1, ' '));
  EXPECT_THAT(choose_error(folder.path(), "llada"), HasSubstr("is larger than 1048576 bytes"));
}

// What transformers' apply_chat_template hands over.
TEST(ApplyChatTemplate, TemplatesSeeWhatTransformersShowsThem) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "tokenizer_config.json", R"({"bos_token": null, "eos_token": "<E>"})");
  testing::write_file(
      folder / "chat_template.jinja",
      "{{ tools is none }}{{ tools is defined }}{{ documents is none }}{{ add_generation_prompt }}"
      "{{ bos_token is defined }}{{ eos_token }}{{ enable_thinking is defined }}{{ date_string is "
      "defined }}");
  EXPECT_EQ(templated(choose_chat_template(folder.path(), "llada"), {}),
            "TrueTrueTrueTrueFalse<E>FalseFalse");
}

TEST(ApplyChatTemplate, TheDayIsTheOneSet) {
  const testing::TemporaryFolder folder;
  testing::write_file(folder / "chat_template.jinja", "{{ strftime_now('%d %b %Y') }}");
  ChatTemplate chat = choose_chat_template(folder.path(), "llama");
  chat.today = std::chrono::year(2024) / 7 / 26;
  EXPECT_EQ(templated(chat, {}), "26 Jul 2024");
}

TEST(ApplyChatTemplate, InvalidUtf8InMessagesIsReplaced) {
  EXPECT_THAT(templated(chat_template_named("chatml"), {{"user", "a\xFF"}}), HasSubstr("a\uFFFD<|im_end|>"));
}

std::filesystem::path shared_folder() { return SINKSCOPE_SHARED_DIR; }

TEST(ApplyChatTemplate, CheckpointsAtHand) {
  const auto tokenizers = shared_folder() / "tokenizers";
  if (!std::filesystem::exists(tokenizers)) GTEST_SKIP() << "needs " << tokenizers;
  EXPECT_EQ(templated(choose_chat_template(tokenizers / "llama3_1", "llama"), {brief, hi}),
            "<|begin_of_text|>" + llama_system + llama_user);
  const std::vector<Message> talk{
      brief, hi, {"assistant", "<think>\nhm\n</think>\n\nYes?"}, {"user", "Why?"}};
  EXPECT_EQ(templated(choose_chat_template(tokenizers / "qwen3", "qwen3"), talk),
            im_system + "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\nYes?<|im_end|>\n" +
                "<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
}

// A template writes the begin token as text, and the tokenizer reads it as the token, once.
TEST(ApplyChatTemplate, TheBeginTokenIsThereOnce) {
  const auto folder = shared_folder() / "tokenizers" / "llama3_1";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "needs " << folder;
  const auto ids = Tokenizer::load(folder).encode(templated(choose_chat_template(folder, "llama"), {hi}));
  EXPECT_EQ(std::count(ids.begin(), ids.end(), 128000), 1);
  EXPECT_EQ(ids.front(), 128000);
}

}  // namespace
}  // namespace sinkscope
