#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/files.h"
#include "text/jinja_shape.h"
#include "text/json_fields.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

constexpr const char* default_bos = "<|startoftext|>";

// The families' format differs in the newlines behind a header. LLaDA's template opens the assistant's turn
// always, Llama 3's when asked to; we always ask.
struct KnownTemplate {
  std::string_view name;
  std::string_view newlines;
  bool asks_for_generation_prompt;
};
constexpr std::array known_templates{KnownTemplate{"llada", "\n\n", false},
                                     KnownTemplate{"mmada", "\n", false},
                                     KnownTemplate{"llama-3", "\n\n", true}};

// The Jinja program of a known format, in one of its spellings.
std::string program_of(const KnownTemplate& known) {
  const std::string header_close = "'<|end_header_id|>" + std::string(known.newlines) + "'";
  const std::string opening =
      "{{ '<|start_header_id|>assistant<|end_header_id|>" + std::string(known.newlines) + "' }}";
  return "{% for message in messages %}{% set content = '<|start_header_id|>' + message['role'] + " +
         header_close +
         " + message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token "
         "+ content "
         "%}{% endif %}{{ content }}{% endfor %}" +
         (known.asks_for_generation_prompt ? "{% if add_generation_prompt %}" + opening + "{% endif %}"
                                           : opening);
}

ChatTemplate build(const KnownTemplate& known, std::string bos) {
  return {std::string(known.name),
          std::move(bos),
          "<|start_header_id|>",
          "<|end_header_id|>" + std::string(known.newlines),
          "<|eot_id|>",
          true};
}

const KnownTemplate* find_known(std::string_view name) {
  const auto known = std::find_if(known_templates.begin(), known_templates.end(),
                                  [&](const KnownTemplate& entry) { return entry.name == name; });
  return known == known_templates.end() ? nullptr : &*known;
}

const KnownTemplate* recognise(std::string_view program) {
  const std::string shape = jinja_shape(program);
  const auto known =
      std::find_if(known_templates.begin(), known_templates.end(),
                   [&](const KnownTemplate& entry) { return jinja_shape(program_of(entry)) == shape; });
  return known == known_templates.end() ? nullptr : &*known;
}

// A Jinja program and the file it stands in.
struct FoundProgram {
  std::string text;
  std::string where;
};

// chat_template is a program, or a list of {"name": ..., "template": ...} of which "default" counts.
std::optional<FoundProgram> program_in_config(const JsonPlace& config) {
  const auto entry = config.find("chat_template");
  if (!entry) return std::nullopt;
  if (!entry->value.is_array()) return FoundProgram{entry->as_string(), entry->where};
  for (std::size_t i = 0; i < entry->array_size(); ++i) {
    const JsonPlace named = entry->element(i);
    if (named.at("name").as_string() == "default") {
      const JsonPlace program = named.at("template");
      return FoundProgram{program.as_string(), program.where};
    }
  }
  throw Error("{} has no template named \"default\"; use --raw to send prompts without a template",
              entry->where);
}

std::string read_bos(const JsonPlace& config) {
  const auto bos = config.find("bos_token");
  if (!bos) return default_bos;
  return bos->value.is_object() ? bos->at("content").as_string() : bos->as_string();
}

Json read_config(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return Json::object();
  return read_json_file(path);
}

}  // namespace

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const KnownTemplate& known : known_templates) names.emplace_back(known.name);
  return names;
}

ChatTemplate chat_template_named(std::string_view name, std::string bos) {
  const KnownTemplate* known = find_known(name);
  if (known == nullptr)
    throw UsageError("there is no chat template \"{}\"; {} would be right", replace_invalid_utf8(name),
                     fmt::format("{}", fmt::join(chat_template_names(), ", ")));
  return build(*known, std::move(bos));
}

ChatTemplate choose_chat_template(const std::filesystem::path& model_dir, std::string_view family) {
  const auto config_path = model_dir / "tokenizer_config.json";
  const Json json = read_config(config_path);
  const JsonPlace config{json, config_path.string()};
  std::string bos = read_bos(config);
  if (family == "mmada") return build(*find_known("mmada"), std::move(bos));

  std::optional<FoundProgram> program;
  const auto jinja_path = model_dir / "chat_template.jinja";
  std::error_code ignored;
  if (std::filesystem::exists(jinja_path, ignored))
    program = FoundProgram{read_file(jinja_path), jinja_path.string()};
  else
    program = program_in_config(config);
  if (program) {
    if (const KnownTemplate* known = recognise(program->text)) return build(*known, std::move(bos));
    throw Error(
        "{} is a chat template that this program does not know; use --raw to send prompts without a template",
        program->where);
  }
  if (family == "llada") return build(*find_known("llada"), std::move(bos));
  throw Error(
      "{} has no chat template and the family {} has no known one; use --raw to send prompts without a "
      "template",
      model_dir.string(), replace_invalid_utf8(family));
}

std::string apply_chat_template(const ChatTemplate& chat_template, std::span<const Message> messages) {
  std::string text;
  for (const Message& message : messages) {
    if (text.empty()) text = chat_template.bos;
    const std::string content = replace_invalid_utf8(message.content);
    text.append(chat_template.role_open).append(message.role).append(chat_template.role_close);
    text.append(chat_template.trim_content ? strip_python_space(content) : std::string_view(content));
    text.append(chat_template.message_close);
  }
  return text + chat_template.role_open + "assistant" + chat_template.role_close;
}

}  // namespace sinkscope
