// `sinkscope run`: how prompts become what the model gets.
#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "support/program.h"

namespace sinkscope {
namespace {

using nlohmann::json;
using testing::content_of;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using testing::ProgramResult;
using testing::run_program;
using testing::TemporaryFolder;
using testing::write_file;

const std::filesystem::path tiny = std::filesystem::path(SINKSCOPE_SOURCE_DIR) / "models/tiny-llada";

// The tiny model with a chat template of its own.
void make_model(const std::filesystem::path& folder, const std::string& chat_template) {
  std::filesystem::create_directories(folder);
  for (const auto& entry : std::filesystem::directory_iterator(tiny))
    std::filesystem::create_symlink(entry.path(), folder / entry.path().filename());
  write_file(folder / "chat_template.jinja", chat_template);
}

ProgramResult run_with(const std::filesystem::path& model, const std::filesystem::path& run,
                       const std::vector<std::string>& more) {
  std::vector<std::string> arguments{"run",     model,       "--prompt", "Hi",          "--steps",
                                     "1",       "--gen-len", "8",        "--block-len", "8",
                                     "--quiet", "--run-dir", run};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(arguments);
}

json prompt_ids(const std::filesystem::path& run) {
  return json::parse(content_of(run / "samples.jsonl"))["prompt_ids"];
}

json tokenized(const std::string& text) {
  return json::parse(run_program({"tokenize", tiny, "--text", text}).out);
}

TEST(RunChatTemplate, TheOptionTakesThePlaceOfTheModelsOwn) {
  const TemporaryFolder folder;
  const auto ids_with = [&](const std::string& name, const std::vector<std::string>& more) {
    const auto result = run_with(tiny, folder / name, more);
    EXPECT_EQ(result.status, 0) << result.error;
    return prompt_ids(folder / name);
  };
  EXPECT_EQ(ids_with("own", {}),
            tokenized("<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
                      "<|start_header_id|>assistant<|end_header_id|>\n\n"));
  EXPECT_EQ(
      ids_with("dream", {"--template", "dream"}),
      tokenized("<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                "<|im_start|>assistant\n"));
  EXPECT_EQ(ids_with("system", {"--template", "qwen2", "--system", "Be brief."}),
            tokenized("<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
                      "<|im_start|>assistant\n"));
  EXPECT_EQ(json::parse(content_of(folder / "dream/run.json"))["options"]["template"], "dream");
}

TEST(RunChatTemplate, TheModelsOwnProgramRuns) {
  const TemporaryFolder folder;
  make_model(
      folder / "m",
      "{%- for m in messages[::-1] %}\n{{- m.role | upper ~ ': ' ~ m.content ~ '\\n' }}\n{%- endfor %}");
  const auto result = run_with(folder / "m", folder / "r", {"--system", "Be brief."});
  ASSERT_EQ(result.status, 0) << result.error;
  EXPECT_EQ(prompt_ids(folder / "r"), tokenized("USER: Hi\nSYSTEM: Be brief.\n"));
}

TEST(RunChatTemplate, ASystemMessageIsNotDroppedInSilence) {
  const TemporaryFolder folder;
  make_model(folder / "m", "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}");
  EXPECT_EQ(run_with(folder / "m", folder / "r", {}).status, 0);
  const auto dropped = run_with(folder / "m", folder / "s", {"--system", "Be brief."});
  EXPECT_EQ(dropped.status, 2);
  EXPECT_THAT(dropped.error, HasSubstr("leaves the system message out"));
  const auto refused = run_with(tiny, folder / "s", {"--system", "Be brief.", "--template", "mistral-v0.1"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_THAT(refused.error, HasSubstr("refuses these messages: mistral-v0.1 has no role system"));
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(RunChatTemplate, WhatIsNotSupportedIsNamedWithItsLine) {
  const TemporaryFolder folder;
  make_model(folder / "m", "{{ bos_token }}\n{{ messages | groupby('role') }}");
  const auto result = run_with(folder / "m", folder / "r", {});
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.error,
              HasSubstr("chat_template.jinja line 2: the filter groupby is not supported; use --raw"));
  EXPECT_THAT(result.error, HasSubstr("--template NAME for one of llada, "));
  EXPECT_EQ(run_with(folder / "m", folder / "r", {"--raw"}).status, 0);
}

TEST(RunChatTemplate, TheDateIsAnOption) {
  const TemporaryFolder folder;
  make_model(folder / "m", "{{ strftime_now('%d %b %Y') }}: {{ messages[0].content }}");
  ASSERT_EQ(run_with(folder / "m", folder / "r", {"--template-date", "2024-07-26"}).status, 0);
  EXPECT_EQ(prompt_ids(folder / "r"), tokenized("26 Jul 2024: Hi"));
  // The day of the beginning is the day of a resumed run.
  ASSERT_EQ(run_with(folder / "m", folder / "today", {}).status, 0);
  const std::string date = json::parse(content_of(folder / "today/run.json"))["options"]["template_date"];
  EXPECT_THAT(date, MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2}"));
  EXPECT_NE(prompt_ids(folder / "today"), prompt_ids(folder / "r"));
}

}  // namespace
}  // namespace sinkscope
