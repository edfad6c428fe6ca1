#include "text/new_tokenizer.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "text/added_tokens.h"
#include "text/byte_level.h"
#include "text/pretokenizer.h"
#include "text/regex.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

std::string in_quotes(std::string_view text) { return json_line(Json(std::string(text.substr(0, 100)))); }

bool could_be_name(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
}

// In a vocabulary of alphabet characters "é" is the byte 0xE9 and "Ġa" is " a": a special token of such a
// spelling would be the same entry.
void check_special_token(const std::string& token) {
  if (!is_valid_utf8(token)) throw UsageError("the special token {} is not UTF-8", in_quotes(token));
  if (token.size() > longest_added_token)
    throw UsageError("the special token {}... has {} bytes; {} are the most", in_quotes(token), token.size(),
                     longest_added_token);
  const auto bytes = bytes_from_alphabet(token);
  if (token.size() == 1 || (bytes && *bytes != token))
    throw UsageError(
        "the special token {} is spelled like the token of the bytes {}; a text like <|name|> would be right",
        in_quotes(token), in_quotes(*bytes));
}

OrderedJson added_token(const std::string& content) {
  return {{"content", content}, {"single_word", false}, {"lstrip", false},
          {"rstrip", false},    {"normalized", false},  {"special", true}};
}

OrderedJson added_tokens(const std::vector<std::string>& special) {
  auto list = OrderedJson::array();
  for (const std::string& content : special) {
    OrderedJson entry{{"id", list.size()}};
    entry.update(added_token(content));
    list.push_back(std::move(entry));
  }
  return list;
}

OrderedJson byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// Token strings by id, special tokens first.
std::vector<std::string> token_strings(const NewTokenizer& tokenizer, std::size_t special) {
  std::vector<std::string> strings = listed_tokens(tokenizer.special);
  for (const unsigned char byte : byte_alphabet_order())
    append_byte_alphabet(strings.emplace_back(), std::string(1, static_cast<char>(byte)));
  for (const LearnedMerge& merge : tokenizer.merges)
    strings.push_back(strings[special + merge.left] + strings[special + merge.right]);
  return strings;
}

OrderedJson bpe_model(const NewTokenizer& tokenizer, std::size_t special) {
  const std::vector<std::string> strings = token_strings(tokenizer, special);
  // The vector below the object: through the object each key would be compared with all before it.
  OrderedJson::object_t vocabulary;
  OrderedJson::object_t::Container& entries = vocabulary;
  for (std::size_t id = 0; id < strings.size(); ++id) entries.emplace_back(strings[id], id);
  auto merges = OrderedJson::array();
  for (const LearnedMerge& merge : tokenizer.merges)
    merges.push_back(strings[special + merge.left] + " " + strings[special + merge.right]);
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocabulary)},
          {"merges", std::move(merges)}};
}

}  // namespace

const std::array<NamedPattern, 3>& split_patterns() {
  static const std::array<NamedPattern, 3> table{
      {{"qwen2", qwen2_pattern}, {"llama3", llama3_pattern}, {"gpt2", gpt2_pattern}}};
  return table;
}

std::string split_pattern(const std::string& name_or_pattern) {
  std::vector<std::string_view> names;
  for (const auto& [name, pattern] : split_patterns()) {
    if (name == name_or_pattern) return std::string(pattern);
    names.push_back(name);
  }
  if (could_be_name(name_or_pattern))
    throw UsageError(
        "there is no pattern {}; there are {}, and a regular expression holds more than letters and digits",
        in_quotes(name_or_pattern), fmt::join(names, ", "));
  if (!is_valid_utf8(name_or_pattern))
    throw UsageError("the pattern {} is not UTF-8", in_quotes(name_or_pattern));
  try {
    const Regex compiles(name_or_pattern, "the pattern");
  } catch (const Error& error) {
    throw UsageError("{}", error.what());
  }
  return name_or_pattern;
}

std::vector<std::string> listed_tokens(const SpecialTokens& tokens) {
  std::vector<std::string> all{tokens.bos, tokens.eos, tokens.pad, tokens.mask};
  all.insert(all.end(), tokens.others.begin(), tokens.others.end());
  std::vector<std::string> listed;
  for (const std::string& token : all) {
    if (token.empty() || std::find(listed.begin(), listed.end(), token) != listed.end()) continue;
    check_special_token(token);
    listed.push_back(token);
  }
  return listed;
}

std::string tokenizer_json(const NewTokenizer& tokenizer) {
  const std::vector<std::string> special = listed_tokens(tokenizer.special);
  const OrderedJson split{{"type", "Split"},
                          {"pattern", {{"Regex", tokenizer.pattern}}},
                          {"behavior", "Isolated"},
                          {"invert", false}};
  const OrderedJson file{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added_tokens(special)},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "Sequence"}, {"pretokenizers", OrderedJson::array({split, byte_level(false, false)})}}},
      {"post_processor", nullptr},
      {"decoder", byte_level(true, true)},
      {"model", bpe_model(tokenizer, special.size())}};
  return file.dump(2) + "\n";
}

std::string tokenizer_config_json(const NewTokenizer& tokenizer) {
  OrderedJson file{{"tokenizer_class", "PreTrainedTokenizerFast"},
                   {"add_bos_token", false},
                   {"add_eos_token", false},
                   {"add_prefix_space", false},
                   {"clean_up_tokenization_spaces", false}};
  const SpecialTokens& special = tokenizer.special;
  for (const auto& [name, token] : {std::pair<const char*, const std::string&>{"bos_token", special.bos},
                                    {"eos_token", special.eos},
                                    {"pad_token", special.pad},
                                    {"mask_token", special.mask}})
    if (!token.empty()) file[name] = token;
  auto decoder = OrderedJson::object();
  const std::vector<std::string> listed = listed_tokens(special);
  for (std::size_t id = 0; id < listed.size(); ++id) decoder[std::to_string(id)] = added_token(listed[id]);
  file["added_tokens_decoder"] = std::move(decoder);
  return file.dump(2) + "\n";
}

}  // namespace sinkscope
