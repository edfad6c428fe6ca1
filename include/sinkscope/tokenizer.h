// Text to token ids and back, equal to what the Hugging Face libraries give for the same files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct TokenizerParts;

/// An immutable tokenizer: all members may be called from several threads at once; copies share their memory.
class Tokenizer {
 public:
  /// Reads MODEL_DIR/tokenizer.json or, where there is none, vocab.json and merges.txt with the added tokens
  /// of added_tokens.json and tokenizer_config.json. docs/tokenizers.md lists what is supported. Throws Error
  /// naming the file and the member at fault, or the folder and the files that would be right when it has
  /// neither.
  static Tokenizer load(const std::filesystem::path& model_dir);

  /// Reads the text of a tokenizer.json; `where` names it in errors.
  static Tokenizer parse(std::string_view json, const std::string& where);

  /// Ids of text. Added tokens that occur in it are recognised, special ones too. add_special: with what the
  /// post-processor puts around (a begin token, say). Bytes that are no UTF-8 count as U+FFFD, one for each
  /// maximal invalid part, as Python's errors="replace" has it. Throws Error when a pattern of the file
  /// backtracks without end.
  std::vector<std::int32_t> encode(std::string_view text, bool add_special = false) const;

  /// Text of ids, always valid UTF-8: bytes that form no character give U+FFFD. skip_special leaves special
  /// tokens out. Ids that stand for nothing become `<id:50400>`.
  std::string decode(std::span<const std::int32_t> ids, bool skip_special = false) const;

  /// A printable name of one token for tables and figures, never empty: part of a character as `<F0 9F>`, a
  /// space as `␣`, control and invisible characters as `\n`, `\t`, `\r`, `\x00`, `\u200B`, a backslash as
  /// `\\`; special tokens as they are; ids that stand for nothing `<id:N>`.
  std::string label(std::int32_t id) const;

  /// The id whose token string is exactly `token`: as written in the file, so `Ġworld` or `▁world`, not `
  /// world`.
  std::optional<std::int32_t> id_of(std::string_view token) const;

  /// Whether the id is an added token marked special: what decode leaves out.
  bool is_special(std::int32_t id) const;

  /// Highest id + 1. Models may have more rows than this.
  std::int32_t size() const;

 private:
  explicit Tokenizer(std::shared_ptr<const TokenizerParts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const TokenizerParts> parts_;
};

}  // namespace sinkscope
