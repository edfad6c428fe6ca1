#include "text/special_tokens.h"

#include <array>

#include "base/json.h"
#include "text/json_fields.h"

namespace sinkscope {
namespace {

using Tokens = std::map<std::string, std::string>;

// What transformers knows by name and hands to chat templates, where the tokenizer has it.
constexpr std::array token_names{"bos_token", "eos_token", "unk_token", "sep_token",
                                 "pad_token", "cls_token", "mask_token"};

// A token is a text or {"content": text}.
void read_tokens(const JsonPlace& config, Tokens& tokens) {
  for (const std::string name : token_names) {
    const auto token = config.find(name);
    if (!token || tokens.count(name) > 0) continue;
    tokens[name] = token->value.is_object() ? token->at("content").as_string() : token->as_string();
  }
}

}  // namespace

std::map<std::string, std::string> special_tokens_of(const std::filesystem::path& model_dir) {
  Tokens tokens;
  std::error_code ignored;
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const auto path = model_dir / name;
    if (model_dir.empty() || !std::filesystem::exists(path, ignored)) continue;
    const Json json = read_json_file(path);
    read_tokens(JsonPlace{json, path.string()}, tokens);
  }
  return tokens;
}

}  // namespace sinkscope
