#include "text/tokenizer_parts.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <string>

namespace sinkscope {
namespace {

// Ids are the file's own. (Hugging Face's library numbers added tokens anew after the vocabulary and warns
// when that differs; a checkpoint's rows follow the file.)
void check_added_token(TokenizerParts& parts, const AddedToken& token, const std::string& where) {
  if (const auto known = parts.model.vocabulary.id_of(token.content)) {
    if (*known != token.id)
      throw Error("{}: the added token {} has id {}, but the vocabulary gives it id {}", where,
                  json_line(Json(token.content)), token.id, *known);
    return;
  }
  if (const std::string* taken = parts.model.vocabulary.token_of(token.id))
    throw Error("{}: the added token {} has id {}, which the vocabulary gives to {}", where,
                json_line(Json(token.content)), token.id, json_line(Json(*taken)));
  const auto again = parts.added_only.id_of(token.content);
  if (!again || *again != token.id) parts.added_only.add(token.content, token.id, where + ": added_tokens");
}

void register_added_token(TokenizerParts& parts, const AddedToken& token) {
  const auto index = static_cast<std::size_t>(token.id);
  if (index >= parts.added_by_id.size()) parts.added_by_id.resize(index + 1, nullptr);
  parts.added_by_id[index] = &token;  // of an entry that stands there twice the last one counts
}

void find_added_token(TokenizerParts& parts, const AddedToken& token) {
  if (parts.added_by_id[static_cast<std::size_t>(token.id)] != &token) return;
  if (token.normalized)
    parts.in_normalized_text.add(normalize(parts.normalizer, token.content), &token);
  else
    parts.in_text.add(token.content, &token);
}

}  // namespace

void finish_tokenizer(TokenizerParts& parts, const std::string& where) {
  for (const AddedToken& token : parts.added_tokens) {
    check_added_token(parts, token, where);
    register_added_token(parts, token);
  }
  // Where two normalize to the same text the special one is found, else the first.
  for (const bool special : {true, false})
    for (const AddedToken& token : parts.added_tokens)
      if (token.special == special) find_added_token(parts, token);
  parts.end_id = std::max(parts.model.vocabulary.end_id(), parts.added_only.end_id());
}

const AddedToken* added_token(const TokenizerParts& parts, std::int32_t id) {
  if (id < 0 || static_cast<std::size_t>(id) >= parts.added_by_id.size()) return nullptr;
  return parts.added_by_id[static_cast<std::size_t>(id)];
}

const std::string* token_string(const TokenizerParts& parts, std::int32_t id) {
  const std::string* token = parts.model.vocabulary.token_of(id);
  return token != nullptr ? token : parts.added_only.token_of(id);
}

}  // namespace sinkscope
