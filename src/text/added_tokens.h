// Added tokens: strings that are found in the text before it is split, special ones among them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_fields.h"
#include "text/span.h"
#include "text/vocabulary.h"

namespace sinkscope {

struct AddedToken {
  std::string content;
  std::int32_t id = 0;
  bool special = false;      // left out by decoding without special tokens
  bool single_word = false;  // only where no word character stands beside it
  bool lstrip = false;       // takes the white space on its left with it
  bool rstrip = false;       // and on its right
  bool normalized = false;   // looked for in the normalized text instead of the text itself
};

/// Longest content that is accepted, in bytes: it bounds the search to O(text * this).
constexpr std::size_t longest_added_token = 1024;

/// Reads the flags of {"content": ..., "special": ...}; `id` is given.
AddedToken read_added_token(const JsonPlace& place, std::int32_t id);

/// Reads the "added_tokens" array of a tokenizer.json.
std::vector<AddedToken> read_added_tokens(const JsonPlace& place);

/// A stretch of text: an added token, or text between added tokens (token == nullptr).
struct TokenStretch {
  const AddedToken* token = nullptr;
  Span span;
};

/// Finds added tokens, leftmost and of those the longest. Immutable after construction.
class AddedTokenFinder {
 public:
  AddedTokenFinder() : root_() { root_.fill(-1); }
  /// Looks for `pattern` and reports `token`, which must outlive this. Empty patterns and patterns already
  /// there are ignored.
  void add(std::string_view pattern, const AddedToken* token);
  bool is_empty() const { return nodes_.empty(); }
  /// Cuts text, in order. The flags of the tokens decide about white space and words beside them.
  std::vector<TokenStretch> find(std::string_view text) const;

 private:
  // A trie as first child and next sibling; the first byte is looked up in root_.
  struct Node {
    unsigned char byte = 0;
    std::int32_t first_child = -1;
    std::int32_t next_sibling = -1;
    const AddedToken* token = nullptr;
  };
  struct Found {
    const AddedToken* token = nullptr;
    std::size_t length = 0;
  };
  std::int32_t new_node(unsigned char byte);
  std::int32_t child(std::int32_t node, unsigned char byte) const;
  Found longest_at(std::string_view text) const;

  std::array<std::int32_t, 256> root_;
  std::vector<Node> nodes_;
};

}  // namespace sinkscope
