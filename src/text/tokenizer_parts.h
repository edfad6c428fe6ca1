// What a tokenizer is made of, and the two ways to read it.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pretokenizer.h"
#include "text/vocabulary.h"

namespace sinkscope {

struct TokenizerParts {
  std::vector<AddedToken> added_tokens;
  Normalizer normalizer;
  Pretokenizer pretokenizer;
  BpeModel model;
  PostProcessor post_processor;
  Decoder decoder;
  bool has_decoder = false;  // without one, decoding joins tokens by spaces

  // Derived by finish_tokenizer; they point into added_tokens.
  Vocabulary added_only;                       // added tokens that the model's vocabulary lacks
  std::vector<const AddedToken*> added_by_id;  // nullptr: not an added token
  AddedTokenFinder in_text, in_normalized_text;
  std::int32_t end_id = 0;  // highest id + 1
};

/// Parts from the text of a tokenizer.json.
TokenizerParts read_tokenizer_json(std::string_view text, const std::string& where);

/// Parts from vocab.json, merges.txt, added_tokens.json and tokenizer_config.json in a folder: the slow
/// tokenizers of Qwen2 and Dream, and GPT-2's if the config names it.
TokenizerParts read_tokenizer_files(const std::filesystem::path& folder);

/// Checks the added tokens against the vocabulary and fills the derived members. Call it once, on parts that
/// stay where they are. `where` begins errors.
void finish_tokenizer(TokenizerParts& parts, const std::string& where);

/// The token string of an id; nullptr for ids that stand for nothing.
const std::string* token_string(const TokenizerParts& parts, std::int32_t id);
/// The added token of an id; nullptr for others.
const AddedToken* added_token(const TokenizerParts& parts, std::int32_t id);

}  // namespace sinkscope
