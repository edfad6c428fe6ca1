// Chat messages as the text that instruction-tuned checkpoints were trained on.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct Message {
  std::string role;  // "system", "user", "assistant"
  std::string content;
};

/// A format of the form: bos, then for each message role_open + role + role_close + content + message_close,
/// then the opening of the assistant's turn.
struct ChatTemplate {
  std::string name;           // "llada", "mmada", "llama-3"
  std::string bos;            // before the first message
  std::string role_open;      // `<|start_header_id|>`
  std::string role_close;     // `<|end_header_id|>` and the newlines
  std::string message_close;  // `<|eot_id|>`
  bool trim_content = true;   // white space at both ends of the content goes (Python's str.strip)
};

/// The names that chat_template_named knows.
std::vector<std::string> chat_template_names();

/// The built-in template of this name with the given text of the begin token. Throws UsageError naming those
/// there are.
ChatTemplate chat_template_named(std::string_view name, std::string bos = "<|startoftext|>");

/// The template of a checkpoint. The family "mmada" always has its own (its scripts replace the
/// checkpoint's); else the folder's chat_template.jinja, or chat_template in tokenizer_config.json, decides,
/// if it is one of the known; else, where there is none, the family's name. The begin token is bos_token in
/// tokenizer_config.json, by default
/// `<|startoftext|>`. Throws Error, with the advice to use --raw, for an unknown template or a family without
/// one.
ChatTemplate choose_chat_template(const std::filesystem::path& model_dir, std::string_view family);

/// The templated text. It holds special tokens as text and ends with the opened assistant turn.
std::string apply_chat_template(const ChatTemplate& chat_template, std::span<const Message> messages);

}  // namespace sinkscope
