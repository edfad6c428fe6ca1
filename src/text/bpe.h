// Byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909) of one piece of text, as Hugging Face's BPE
// model does it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/json_fields.h"
#include "text/piece_cache.h"
#include "text/vocabulary.h"

namespace sinkscope {

/// What two neighbouring tokens become, and how early.
struct Merge {
  std::int32_t left = 0;
  std::int32_t right = 0;
  std::uint32_t rank = 0;  // place in the list: the smallest goes first
  std::int32_t merged = 0;
};

/// Merges by pair of ids: a row for each left id, sorted by right id.
class MergeTable {
 public:
  MergeTable() = default;
  /// Of merges of the same pair the last one counts. Ids are below end_id.
  MergeTable(std::vector<Merge> merges, std::int32_t end_id);
  /// nullptr when the two do not merge.
  const Merge* find(std::int32_t left, std::int32_t right) const;

 private:
  std::vector<Merge> merges_;
  std::vector<std::uint32_t> row_begin_;
};

struct BpeModel {
  Vocabulary vocabulary;
  MergeTable merges;
  std::optional<std::string> unk_token;
  bool fuse_unk = false;       // neighbouring unknown characters give one unk
  bool byte_fallback = false;  // unknown characters become tokens <0x00>..<0xFF>
  bool ignore_merges = false;  // a piece that is a token is that token, whatever the merges say
  std::string where;           // begins errors

  // Derived by finish_bpe_model.
  std::array<std::optional<std::int32_t>, 256> byte_ids;
  bool cut_before_spaces =
      false;  // no merge crosses from another character to U+2581: pieces may be cut there
};

/// Reads the "model" of a tokenizer.json. Throws Error naming a model or an option that is not supported.
BpeModel read_bpe_model(const JsonPlace& place);

/// Fills merges and the derived members. Pairs are strings of the vocabulary, in order of rank.
void finish_bpe_model(BpeModel& model, const std::vector<std::pair<std::string, std::string>>& pairs);

/// Encodes pieces of text one by one. Not for several threads at once: it keeps scratch memory and remembers
/// pieces it has seen.
class BpeEncoder {
 public:
  explicit BpeEncoder(const BpeModel& model) : model_(model) {}
  /// Appends the ids of a piece in O(n log n). Throws Error when a character is unknown and unk_token is not
  /// in the vocabulary. Unknown characters of a model without unk_token vanish.
  void encode(std::string_view piece, std::vector<std::int32_t>& ids);

 private:
  // A token of the piece under way; a list linked by index.
  struct Symbol {
    std::int32_t id;
    std::int32_t previous, next;  // -1: none
    bool is_gone;                 // merged into its left neighbour
  };
  // A possible merge of the symbol at `position` with its right neighbour.
  struct Candidate {
    std::uint32_t rank;
    std::int32_t position;
    std::int32_t merged;
    bool operator<(
        const Candidate& other) const {  // for a heap with the smallest rank, then leftmost, on top
      return rank != other.rank ? rank > other.rank : position > other.position;
    }
  };

  void encode_stretch(std::string_view piece, std::vector<std::int32_t>& ids);
  void encode_new(std::string_view piece, std::vector<std::int32_t>& ids);
  void start_symbols(std::string_view piece);
  void push_symbol(std::int32_t id);
  bool push_bytes(std::string_view character);
  std::int32_t unk_id() const;
  void merge_symbols();
  void merge_pair(const Candidate& best);
  void push_candidate(std::int32_t position);

  const BpeModel& model_;
  PieceCache cache_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace sinkscope
