// A byte-level BPE tokenizer that was just trained, and the files that describe it to Hugging Face's
// libraries.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/bpe_trainer.h"

namespace sinkscope {

/// A pattern that cuts texts into words, and the name it is chosen by.
struct NamedPattern {
  std::string_view name;
  std::string_view pattern;
};

/// qwen2 (every digit a word of its own), llama3 (up to three digits), gpt2 (any number of them).
const std::array<NamedPattern, 3>& split_patterns();

/// The pattern of that name, or the text itself as a regular expression in Oniguruma's syntax. Throws
/// UsageError for a text of letters and digits alone that is no name, for one that does not compile and for
/// one that is no UTF-8.
std::string split_pattern(const std::string& name_or_pattern);

/// Texts of the special tokens; an empty one is not there.
struct SpecialTokens {
  std::string bos, eos, pad, mask;
  std::vector<std::string> others;
};

/// All of them, each once, in the order of their ids: bos, eos, pad, mask, the others. Throws UsageError for
/// one that is longer than 1024 bytes, one byte, no UTF-8, or spelled like a token of other bytes.
std::vector<std::string> listed_tokens(const SpecialTokens& tokens);

struct NewTokenizer {
  SpecialTokens special;
  std::string pattern;
  std::vector<LearnedMerge> merges;

  /// Special tokens, bytes, merges: the ids come in this order.
  std::size_t size() const { return listed_tokens(special).size() + 256 + merges.size(); }
};

/// The content of tokenizer.json: no normalizer, the pattern and the byte alphabet, BPE, and a decoder that
/// gives any text back byte for byte. Nothing is added around a text.
std::string tokenizer_json(const NewTokenizer& tokenizer);

/// The content of tokenizer_config.json: which of the special tokens is which.
std::string tokenizer_config_json(const NewTokenizer& tokenizer);

}  // namespace sinkscope
