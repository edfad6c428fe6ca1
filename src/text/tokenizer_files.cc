// Reading vocab.json and merges.txt, the files of Hugging Face's slow tokenizers of the GPT-2 kind.
#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/foreign_content.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Json parse_large_json(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  if (const auto foreign = foreign_content(text)) throw Error("{} is {}", path.string(), *foreign);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    throw Error("{} is not valid JSON ({})", path.string(), error.what());
  }
}

Pairs read_merges_file(const std::filesystem::path& path) {
  const std::string content = read_file(path);
  if (!is_valid_utf8(content)) throw Error("{} is not valid UTF-8", path.string());
  Pairs pairs;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = std::string_view(content).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || (line_number == 1 && line.rfind("#version", 0) == 0)) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos)
      throw Error("{} line {} must be two tokens separated by one space", path.string(), line_number);
    pairs.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return pairs;
}

void add_token(std::vector<AddedToken>& tokens, AddedToken token) {
  const auto same = std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& other) {
    return other.content == token.content && other.id == token.id;
  });
  if (same != tokens.end())
    *same = std::move(token);
  else
    tokens.push_back(std::move(token));
}

// added_tokens.json: {"token": id}. It has no flags; all are taken as special, as slow tokenizers save them.
void read_added_tokens_file(const std::filesystem::path& path, std::vector<AddedToken>& tokens) {
  const Json json = read_json_file(path);
  const JsonPlace file{json, path.string()};
  if (!json.is_object())
    throw Error("{} holds {}; an object would be right", path.string(), json_type_name(json));
  for (const auto& [content, id] : json.items()) {
    const JsonPlace place{id, path.string() + ": " + content};
    const Json entry = {{"content", content}, {"special", true}, {"normalized", false}};
    add_token(tokens, read_added_token(JsonPlace{entry, place.where},
                                       static_cast<std::int32_t>(place.as_integer(0, max_token_id))));
  }
}

// added_tokens_decoder of tokenizer_config.json: {"151643": {"content": ..., "special": ...}}.
void read_added_tokens_decoder(const JsonPlace& decoder, std::vector<AddedToken>& tokens) {
  if (!decoder.value.is_object())
    throw Error("{} is {}; an object would be right", decoder.where, json_type_name(decoder.value));
  for (const auto& [key, entry] : decoder.value.items()) {
    std::int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 || id > max_token_id)
      throw Error("{}: the key {} is no id; an integer from 0 to {} would be right", decoder.where,
                  json_line(Json(key)), max_token_id);
    add_token(tokens, read_added_token(JsonPlace{entry, decoder.where + "." + key}, id));
  }
}

// The tokens that Qwen2's and Dream's own code knows without a file, for folders that came without one. They
// are meant for the vocabulary of 151643 entries alone.
void add_known_tokens(std::vector<AddedToken>& tokens) {
  constexpr std::pair<const char*, std::int32_t> known[] = {{"<|endoftext|>", 151643},
                                                            {"<|im_start|>", 151644},
                                                            {"<|im_end|>", 151645},
                                                            {"<|beginoftext|>", 151665},
                                                            {"<|mask|>", 151666}};
  for (const auto& [content, id] : known) tokens.push_back({content, id, true, false, false, false, false});
}

struct SlowKind {
  bool is_gpt2 = false;
  bool add_prefix_space = false;
};

SlowKind read_kind(const std::optional<JsonPlace>& config) {
  const std::string name = config ? config->string_or("tokenizer_class", "") : "";
  constexpr std::string_view qwen2_classes[] = {"", "Qwen2Tokenizer", "Qwen2TokenizerFast", "DreamTokenizer"};
  if (std::find(std::begin(qwen2_classes), std::end(qwen2_classes), name) != std::end(qwen2_classes))
    return {};
  if (name == "GPT2Tokenizer" || name == "GPT2TokenizerFast")
    return {true, config->bool_or("add_prefix_space", false)};
  throw Error(
      "{}.tokenizer_class is \"{}\"; without a tokenizer.json only Qwen2Tokenizer, DreamTokenizer and "
      "GPT2Tokenizer are supported",
      config->where, replace_invalid_utf8(name.substr(0, 100)));
}

}  // namespace

TokenizerParts read_tokenizer_files(const std::filesystem::path& folder) {
  const auto config_path = folder / "tokenizer_config.json";
  Json config_json;
  std::optional<JsonPlace> config;
  if (std::filesystem::exists(config_path)) {
    config_json = read_json_file(config_path);
    config.emplace(JsonPlace{config_json, config_path.string()});
  }
  const SlowKind kind = read_kind(config);

  TokenizerParts parts;
  if (!kind.is_gpt2) {
    parts.normalizer.emplace_back(UnicodeForm::nfc);
    parts.pretokenizer.emplace_back(
        Split{Regex(qwen2_pattern, folder.string()), SplitBehavior::isolated, false});
  }
  ByteLevel byte_level{kind.add_prefix_space, {}};
  if (kind.is_gpt2) byte_level.pattern.emplace_back(gpt2_pattern, folder.string());
  parts.pretokenizer.emplace_back(std::move(byte_level));
  parts.decoder.emplace_back(DecodeByteLevel{});
  parts.has_decoder = true;

  const auto vocabulary_path = folder / "vocab.json";
  const Json vocabulary = parse_large_json(vocabulary_path);
  parts.model.where = vocabulary_path.string();
  parts.model.vocabulary = read_vocabulary(JsonPlace{vocabulary, vocabulary_path.string()});
  parts.model.where = (folder / "merges.txt").string();
  finish_bpe_model(parts.model, read_merges_file(folder / "merges.txt"));

  const auto added_path = folder / "added_tokens.json";
  const auto decoder = config ? config->find("added_tokens_decoder") : std::nullopt;
  if (std::filesystem::exists(added_path)) read_added_tokens_file(added_path, parts.added_tokens);
  if (decoder) read_added_tokens_decoder(*decoder, parts.added_tokens);
  constexpr std::size_t qwen2_vocabulary_size = 151643;
  if (!kind.is_gpt2 && parts.added_tokens.empty() && parts.model.vocabulary.size() == qwen2_vocabulary_size)
    add_known_tokens(parts.added_tokens);
  return parts;
}

}  // namespace sinkscope
