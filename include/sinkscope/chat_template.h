// Chat messages as the text that instruction-tuned checkpoints were trained on.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

namespace jinja {
class Template;
}

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

/// A chat format: a Jinja program and what it sees beside the messages.
struct ChatTemplate {
  std::string name;  // of a built-in one, or the file and member a checkpoint's own stands in
  std::shared_ptr<const jinja::Template> program;
  std::map<std::string, std::string> tokens;  // "bos_token" -> "<|startoftext|>"; those there are
  std::chrono::year_month_day today;          // for templates that ask the date: here, today
};

/// The names that chat_template_named knows.
std::vector<std::string> chat_template_names();

/// The built-in template of this name, with the special tokens of the checkpoint's tokenizer_config.json
/// where it states them, else those the format was made with. An empty model_dir states none. Throws
/// UsageError naming the templates there are.
ChatTemplate chat_template_named(std::string_view name, const std::filesystem::path& model_dir = {});

/// The template of a checkpoint. The family "mmada" always has its own (its scripts replace the
/// checkpoint's); else the folder's chat_template.jinja, or chat_template in tokenizer_config.json; else,
/// where there is none, the built-in one of the families llada, llada-moe, dream, qwen2 and qwen3. Throws
/// Error, with the advice to use --raw or --template, for a family without one and for a program that cannot
/// be parsed.
ChatTemplate choose_chat_template(const std::filesystem::path& model_dir, std::string_view family);

/// The templated text. It holds special tokens as text and ends with the opened assistant turn, so encode it
/// without what the post-processor adds. Always ends: the program runs within limits. Throws Error naming the
/// template's line when it refuses the messages or uses what is not supported.
std::string apply_chat_template(const ChatTemplate& chat_template, std::span<const Message> messages);

}  // namespace sinkscope
