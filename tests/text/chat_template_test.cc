#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>

#include "base/json.h"
#include "text/jinja_shape.h"
#include "text/temporary_folder.h"

namespace sinkscope {
namespace {

using testing::HasSubstr;

const Message hi = {"user", "Hi there"};

// LLaDA's program in another hand: other quotes, escapes, trimming, names and lines.
const char* const llada_program = R"({%- set loop_messages = messages -%}
{# a comment #}
{%- for m in loop_messages -%}
  {%- set content = "<|start_header_id|>" + m.role + "<|end_header_id|>\n\n" + m.content | trim + "<|eot_id|>" -%}
  {%- if loop.first -%}{%- set content = bos_token + content -%}{%- endif -%}
  {{- content -}}
{%- endfor -%}
{{- "<|start_header_id|>assistant<|end_header_id|>\n\n" -}})";

std::string choose_error(const std::filesystem::path& folder, std::string_view family) {
  try {
    choose_chat_template(folder, family);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ApplyChatTemplate, LladaHasTwoNewlinesMmadaOne) {
  EXPECT_EQ(apply_chat_template(chat_template_named("llada"), {&hi, 1}),
            "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nHi there<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
  EXPECT_EQ(apply_chat_template(chat_template_named("mmada"), {&hi, 1}),
            "<|startoftext|><|start_header_id|>user<|end_header_id|>\nHi there<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n");
}

TEST(ApplyChatTemplate, TrimsContentAndPutsBosOnce) {
  const Message messages[] = {{"system", " \nBe brief.\x1C\u3000"}, {"user", "a b"}, {"assistant", ""}};
  EXPECT_EQ(apply_chat_template(chat_template_named("llada", "<B>"), messages),
            "<B><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
            "<|start_header_id|>user<|end_header_id|>\n\na b<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n<|eot_id|>"
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ApplyChatTemplate, WithoutMessagesOpensTheAssistantsTurn) {
  EXPECT_EQ(apply_chat_template(chat_template_named("llada"), {}),
            "<|start_header_id|>assistant<|end_header_id|>\n\n");
}

TEST(ChooseChatTemplate, TheFamilyDecidesWhereTheFolderIsSilent) {
  const TemporaryFolder folder;
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").name, "llada");
  EXPECT_EQ(choose_chat_template(folder.path(), "mmada").name, "mmada");
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").bos, "<|startoftext|>");
  EXPECT_EQ(choose_error(folder.path(), "dream"),
            folder.path().string() +
                " has no chat template and the family dream has no known one; "
                "use --raw to send prompts without a template");
}

TEST(ChooseChatTemplate, RecognisesAProgramWhateverItsSpelling) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", Json{{"chat_template", llada_program}}.dump());
  EXPECT_EQ(choose_chat_template(folder.path(), "other").name, "llada");
  // MMaDA's scripts put their own in its place.
  EXPECT_EQ(choose_chat_template(folder.path(), "mmada").role_close, "<|end_header_id|>\n");
}

TEST(ChooseChatTemplate, TheJinjaFileComesFirst) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ messages }}"})");
  folder.write("chat_template.jinja", llada_program);
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").name, "llada");
}

TEST(ChooseChatTemplate, OfSeveralTemplatesTheDefaultCounts) {
  const TemporaryFolder folder;
  Json list = {{{"name", "tool_use"}, {"template", "{{ tools }}"}},
               {{"name", "default"}, {"template", llada_program}}};
  folder.write("tokenizer_config.json", Json{{"chat_template", list}}.dump());
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").name, "llada");
  list.erase(1);
  folder.write("tokenizer_config.json", Json{{"chat_template", list}}.dump());
  EXPECT_THAT(choose_error(folder.path(), "llada"),
              HasSubstr("has no template named \"default\"; use --raw"));
}

TEST(ChooseChatTemplate, RefusesAnUnknownProgram) {
  const TemporaryFolder folder;
  std::string program = llada_program;
  program.replace(program.find("<|eot_id|>"), 10, "<|im_end|>");
  folder.write("tokenizer_config.json", Json{{"chat_template", program}}.dump());
  EXPECT_EQ(choose_error(folder.path(), "llada"), (folder.path() / "tokenizer_config.json").string() +
                                                      ": chat_template is a chat template that this program "
                                                      "does not know; use --raw to send prompts without "
                                                      "a template");
}

TEST(ChooseChatTemplate, BosIsAStringOrAnObject) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"bos_token": "<A>"})");
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").bos, "<A>");
  folder.write("tokenizer_config.json", R"({"bos_token": {"content": "<B>", "special": true}})");
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").bos, "<B>");
  folder.write("tokenizer_config.json", R"({"bos_token": null})");
  EXPECT_EQ(choose_chat_template(folder.path(), "llada").bos, "<|startoftext|>");
  folder.write("tokenizer_config.json", R"({"bos_token": 7})");
  EXPECT_THAT(choose_error(folder.path(), "llada"),
              HasSubstr("bos_token is an integer; a string would be right"));
}

TEST(ChatTemplateNamed, ListsTheNamesThereAre) {
  try {
    chat_template_named("chatml");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "there is no chat template \"chatml\"; llada, mmada, llama-3 would be right");
  }
}

TEST(JinjaShape, TellsOutputFromSpelling) {
  EXPECT_EQ(jinja_shape("{{ a['b'] }}"), jinja_shape("{{- a.b -}}"));
  EXPECT_EQ(jinja_shape("{{ 'x\\n' }}"), jinja_shape("{{ \"x\n\" }}"));
  EXPECT_EQ(jinja_shape("{% if a %}\n  {% endif %}"), jinja_shape("{%if a%}{%endif%}"));
  // Lines behind an expression are output.
  EXPECT_NE(jinja_shape("{{ a }}\n{{ b }}"), jinja_shape("{{ a }}{{ b }}"));
  EXPECT_NE(jinja_shape("{{ 'a b' }}"), jinja_shape("{{ 'ab' }}"));
  EXPECT_NE(jinja_shape("{{ a }} {% if b %}"), jinja_shape("{{ a }}{% if b %}"));
}

TEST(JinjaShape, TakesBrokenPrograms) {
  for (const char* broken :
       {"", "{", "{{", "{% for", "{{ 'a", "{{ \"\\", "{# ", "{%-", "}} %}", "{{ a. }}", "{{ .b }}"})
    (void)jinja_shape(broken);
}

TEST(ChooseChatTemplate, KnowsTheCheckpointsAtHand) {
  const std::filesystem::path shared = SINKSCOPE_SHARED_DIR;
  if (!std::filesystem::exists(shared / "models" / "tiny-llada")) GTEST_SKIP() << "needs " << shared;
  EXPECT_EQ(choose_chat_template(shared / "models" / "tiny-llada", "").name, "llada");
  EXPECT_EQ(choose_chat_template(shared / "tokenizers" / "llama3_1", "llama").name, "llama-3");
  EXPECT_EQ(choose_chat_template(shared / "tokenizers" / "llama3_1", "llama").bos, "<|begin_of_text|>");
  EXPECT_THAT(choose_error(shared / "tokenizers" / "qwen3", "qwen"), HasSubstr("--raw"));
}

}  // namespace
}  // namespace sinkscope
