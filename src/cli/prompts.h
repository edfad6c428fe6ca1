// The prompts of a run and where they come from.
#pragma once

#include <sinkscope/chat_template.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct Prompt {
  std::string id;
  std::string text;                              // before the template; empty when ids are given
  std::optional<std::string> reference;          // the known answer
  std::optional<std::vector<std::int32_t>> ids;  // taken as they are
};

/// Long names without `--`, as on the command line.
struct PromptOptions {
  std::vector<std::string> prompt;
  std::string prompts;  // a file: JSONL with `prompt` or `question` and `answer`, or plain text lines
  std::string dataset;  // gsm8k, humaneval, mbpp, math500
  std::string data_dir;
  std::vector<std::string> prompt_ids;  // "1,2,3"
  std::optional<std::int64_t> num_samples;
};

/// How a prompt becomes the text that the model gets.
struct TemplateOptions {
  bool raw = false;    // no chat template
  std::string system;  // the message before the prompt; empty: none
  std::string name;    // of a built-in chat template; empty: the checkpoint's own
  std::string date;    // YYYY-MM-DD, for templates that ask it
};

/// Throws UsageError for combinations that cannot be, an unknown name and a date that is none.
void validate(const TemplateOptions& options);

/// The day of this machine's clock, as YYYY-MM-DD.
std::string todays_date();

/// The chat template for the prompts of a model; options.raw is not set.
ChatTemplate choose_chat_template(const TemplateOptions& options, const std::filesystem::path& model_dir,
                                  std::string_view family);

/// The prompt as the template has it. Throws UsageError when the template drops the system message, Error
/// when it refuses the messages.
std::string templated(const ChatTemplate& chat, const TemplateOptions& options, const std::string& prompt);

/// All of them in that order, cut to num_samples. Throws UsageError when there is none, Error naming file and
/// line.
std::vector<Prompt> read_prompts(const PromptOptions& options);

/// "1,2,3" -> ids; "" -> none. `option` names the source in the UsageError.
std::vector<std::int32_t> parse_ids(std::string_view text, std::string_view option);

}  // namespace sinkscope
