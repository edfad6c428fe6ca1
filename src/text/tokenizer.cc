#include <sinkscope/error.h>
#include <sinkscope/tokenizer.h>

#include <utility>

#include "base/files.h"
#include "text/label.h"
#include "text/tokenizer_parts.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

std::string placeholder(std::int32_t id) { return fmt::format("<id:{}>", id); }

// One call of Tokenizer::encode.
class Encoding {
 public:
  explicit Encoding(const TokenizerParts& parts) : parts_(parts), encoder_(parts.model) {}

  // Added tokens first; what is between them is normalized, searched again and given to the model.
  std::vector<std::int32_t> encode(std::string_view text) && {
    for (const TokenStretch& stretch : parts_.in_text.find(text)) {
      if (stretch.token != nullptr)
        ids_.push_back(stretch.token->id);
      else
        encode_between(std::string(stretch.span.of(text)), stretch.span.begin == 0);
    }
    return std::move(ids_);
  }

 private:
  void encode_between(std::string text, bool at_text_start) {
    text = normalize(parts_.normalizer, std::move(text));
    if (parts_.in_normalized_text.is_empty()) return encode_plain(std::move(text), at_text_start);
    for (const TokenStretch& stretch : parts_.in_normalized_text.find(text)) {
      if (stretch.token != nullptr)
        ids_.push_back(stretch.token->id);
      else
        encode_plain(std::string(stretch.span.of(text)), at_text_start && stretch.span.begin == 0);
    }
  }

  void encode_plain(std::string text, bool at_text_start) {
    const Pieces pieces = pretokenize(parts_.pretokenizer, std::move(text), at_text_start);
    for (const Span piece : pieces.spans) encoder_.encode(piece.of(pieces.text), ids_);
  }

  const TokenizerParts& parts_;
  BpeEncoder encoder_;
  std::vector<std::int32_t> ids_;
};

std::shared_ptr<const TokenizerParts> finished(TokenizerParts parts, const std::string& where) {
  auto shared = std::make_shared<TokenizerParts>(std::move(parts));
  finish_tokenizer(*shared, where);
  return shared;
}

}  // namespace

Tokenizer Tokenizer::load(const std::filesystem::path& model_dir) {
  const auto file = model_dir / "tokenizer.json";
  std::error_code ignored;
  if (std::filesystem::exists(file, ignored)) return parse(read_file(file), file.string());
  if (!std::filesystem::exists(model_dir / "vocab.json", ignored) ||
      !std::filesystem::exists(model_dir / "merges.txt", ignored))
    throw Error("{} has no tokenizer: a tokenizer.json, or a vocab.json with a merges.txt, would be right",
                model_dir.string());
  return Tokenizer(finished(read_tokenizer_files(model_dir), model_dir.string()));
}

Tokenizer Tokenizer::parse(std::string_view json, const std::string& where) {
  return Tokenizer(finished(read_tokenizer_json(json, where), where));
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, bool add_special) const {
  std::string repaired;
  if (!is_valid_utf8(text)) {
    repaired = replace_invalid_utf8(text);
    text = repaired;
  }
  std::vector<std::int32_t> ids = Encoding(*parts_).encode(text);
  if (add_special) {
    const PostProcessor& processor = parts_->post_processor;
    ids.insert(ids.begin(), processor.before.begin(), processor.before.end());
    ids.insert(ids.end(), processor.after.begin(), processor.after.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const std::int32_t> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const std::int32_t id : ids) {
    if (skip_special && is_special(id)) continue;
    const std::string* token = token_string(*parts_, id);
    tokens.push_back(token != nullptr ? *token : placeholder(id));
  }
  if (parts_->has_decoder) return decode_tokens(parts_->decoder, std::move(tokens));
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) text.append(i > 0 ? " " : "").append(tokens[i]);
  return text;
}

std::string Tokenizer::label(std::int32_t id) const {
  const std::string* token = token_string(*parts_, id);
  if (token == nullptr) return placeholder(id);
  const bool is_added = added_token(*parts_, id) != nullptr;
  std::string name = printable(is_added ? *token : token_bytes(parts_->decoder, *token));
  return name.empty() ? placeholder(id) : name;
}

std::optional<std::int32_t> Tokenizer::id_of(std::string_view token) const {
  const auto id = parts_->model.vocabulary.id_of(token);
  return id ? id : parts_->added_only.id_of(token);
}

bool Tokenizer::is_special(std::int32_t id) const {
  const AddedToken* token = added_token(*parts_, id);
  return token != nullptr && token->special;
}

std::int32_t Tokenizer::size() const { return parts_->end_id; }

}  // namespace sinkscope
