#include <sinkscope/chat_template.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "base/files.h"
#include "text/built_in_templates.h"
#include "text/jinja/template.h"
#include "text/json_fields.h"
#include "text/special_tokens.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using Tokens = std::map<std::string, std::string>;

constexpr std::array families_with_one_format{"llada", "llada-moe", "dream", "qwen2", "qwen3"};
/// Real templates have some 10 kB.
constexpr std::uintmax_t longest_program = std::uintmax_t{1} << 20;

std::string joined_names() { return fmt::format("{}", fmt::join(chat_template_names(), ", ")); }

std::string advice() {
  return "use --raw to send prompts without a template, or --template NAME for one of " + joined_names();
}

std::chrono::year_month_day local_today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return std::chrono::year(local.tm_year + 1900) / (local.tm_mon + 1) / local.tm_mday;
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
  throw Error("{} has no template named \"default\"; {}", entry->where, advice());
}

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::optional<FoundProgram> program_of(const std::filesystem::path& model_dir) {
  const auto jinja_path = model_dir / "chat_template.jinja";
  if (is_there(jinja_path)) return FoundProgram{read_file(jinja_path, longest_program), jinja_path.string()};
  const auto config_path = model_dir / "tokenizer_config.json";
  if (!is_there(config_path)) return std::nullopt;
  const Json json = read_json_file(config_path);
  return program_in_config(JsonPlace{json, config_path.string()});
}

const BuiltInTemplate* find_built_in(std::string_view name) {
  const auto& all = built_in_templates();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == name; });
  return found == all.end() ? nullptr : &*found;
}

ChatTemplate build(std::string name, std::string_view program, const std::string& where, Tokens tokens) {
  if (program.size() > longest_program)
    throw Error("{} is {} bytes long; a chat template of at most {} would be right", where, program.size(),
                longest_program);
  return {std::move(name), std::make_shared<const jinja::Template>(program, where, advice()),
          std::move(tokens), local_today()};
}

// The checkpoint's tokens win over those of the format.
ChatTemplate build(const BuiltInTemplate& built_in, Tokens tokens) {
  tokens.insert(built_in.tokens.begin(), built_in.tokens.end());
  const std::string name(built_in.name);
  return build(name, built_in.program, "chat template " + name, std::move(tokens));
}

jinja::Value message_value(jinja::Work& work, const Message& message) {
  return jinja::make_dict(work, {{"role", jinja::make_text(work, replace_invalid_utf8(message.role))},
                                 {"content", jinja::make_text(work, replace_invalid_utf8(message.content))}});
}

}  // namespace

std::vector<std::string> chat_template_names() {
  std::vector<std::string> names;
  for (const BuiltInTemplate& built_in : built_in_templates()) names.emplace_back(built_in.name);
  return names;
}

ChatTemplate chat_template_named(std::string_view name, const std::filesystem::path& model_dir) {
  const BuiltInTemplate* built_in = find_built_in(name);
  if (built_in == nullptr)
    throw UsageError("there is no chat template \"{}\"; {} would be right", replace_invalid_utf8(name),
                     joined_names());
  return build(*built_in, special_tokens_of(model_dir));
}

ChatTemplate choose_chat_template(const std::filesystem::path& model_dir, std::string_view family) {
  if (family == "mmada") return chat_template_named(family, model_dir);
  const auto program = program_of(model_dir);
  if (program) return build(program->where, program->text, program->where, special_tokens_of(model_dir));
  if (std::find(families_with_one_format.begin(), families_with_one_format.end(), family) !=
      families_with_one_format.end())
    return chat_template_named(family, model_dir);
  throw Error(
      "{} has no chat template, as base models have none, and the family {} has no format of its own; {}",
      model_dir.string(), replace_invalid_utf8(family), advice());
}

std::string apply_chat_template(const ChatTemplate& chat_template, std::span<const Message> messages) {
  std::size_t bytes = 0;
  for (const Message& message : messages) bytes += message.role.size() + message.content.size() + 256;
  jinja::Work work(bytes);
  std::vector<jinja::Value> values;
  for (const Message& message : messages) values.push_back(message_value(work, message));
  // As transformers' apply_chat_template calls it.
  jinja::Context context{{{"messages", jinja::make_list(work, std::move(values))},
                          {"tools", jinja::None{}},
                          {"documents", jinja::None{}},
                          {"add_generation_prompt", true}},
                         chat_template.today};
  for (const auto& [name, token] : chat_template.tokens)
    context.names.emplace_back(name, jinja::make_text(work, token));
  return chat_template.program->render(context, work);
}

}  // namespace sinkscope
