#include "text/bpe.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "text/unicode.h"

namespace sinkscope {
namespace {

constexpr std::string_view space_mark = "\xE2\x96\x81";  // U+2581, SentencePiece's space

using Pair = std::pair<std::string, std::string>;

// "a b" gives (a, b). A token may itself hold a space; then the one split counts that names three known
// tokens. npos: there is none, or more than one.
std::size_t find_merge_border(std::string_view merge, const Vocabulary& vocabulary) {
  constexpr std::size_t most_spaces = 64;  // bounds the work on one line
  const std::size_t first = merge.find(' ');
  if (first == std::string_view::npos || merge.find(' ', first + 1) == std::string_view::npos) return first;
  std::size_t border = std::string_view::npos, spaces = 0;
  for (std::size_t at = first; at != std::string_view::npos; at = merge.find(' ', at + 1)) {
    if (++spaces > most_spaces) return std::string_view::npos;
    const std::string left(merge.substr(0, at)), right(merge.substr(at + 1));
    if (!vocabulary.id_of(left) || !vocabulary.id_of(right) || !vocabulary.id_of(left + right)) continue;
    if (border != std::string_view::npos) return std::string_view::npos;
    border = at;
  }
  return border;
}

Pair split_merge(const std::string& merge, const Vocabulary& vocabulary, const JsonPlace& merges,
                 std::size_t index) {
  const std::size_t border = find_merge_border(merge, vocabulary);
  if (border == std::string::npos)
    throw Error(
        "{}[{}]: the merge {} is not two tokens of the vocabulary separated by one space; for tokens that "
        "hold "
        "spaces write it as a list of two strings",
        merges.where, index, json_line(Json(merge.substr(0, 200))));
  return {merge.substr(0, border), merge.substr(border + 1)};
}

std::vector<Pair> read_merges(const JsonPlace& place, const Vocabulary& vocabulary) {
  std::vector<Pair> pairs;
  pairs.reserve(place.array_size());
  for (std::size_t i = 0; i < place.value.size(); ++i) {
    const Json& merge = place.value[i];
    if (merge.is_string()) {
      const auto& text = merge.get_ref<const std::string&>();
      if (text.rfind("#version", 0) == 0) continue;
      pairs.push_back(split_merge(text, vocabulary, place, i));
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      pairs.emplace_back(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>());
    } else {
      throw Error("{}[{}] must be a string \"a b\" or a list of two strings", place.where, i);
    }
  }
  return pairs;
}

std::int32_t require_id(const Vocabulary& vocabulary, const std::string& token, std::size_t rank,
                        const std::string& where) {
  const auto id = vocabulary.id_of(token);
  if (!id)
    throw Error("{}: merge {} needs the token {}, which is not in the vocabulary", where, rank,
                json_line(Json(token.substr(0, 200))));
  return *id;
}

// Whether a space mark follows another character somewhere in token.
bool has_inner_space_mark(std::string_view token) {
  for (std::size_t at = token.find(space_mark, 1); at != std::string_view::npos;
       at = token.find(space_mark, at + 1))
    if (at < space_mark.size() || token.substr(at - space_mark.size(), space_mark.size()) != space_mark)
      return true;
  return false;
}

void refuse_affix(const JsonPlace& place, const std::string& key) {
  if (!place.string_or(key, "").empty())
    throw Error("{}: {} is not supported; null or an empty string would be right", place.where, key);
}

}  // namespace

MergeTable::MergeTable(std::vector<Merge> merges, std::int32_t end_id) : merges_(std::move(merges)) {
  const auto key = [](const Merge& m) { return std::pair(m.left, m.right); };
  // Highest rank first among equal pairs, so that unique keeps the last one of the list.
  std::sort(merges_.begin(), merges_.end(), [&](const Merge& a, const Merge& b) {
    return key(a) != key(b) ? key(a) < key(b) : a.rank > b.rank;
  });
  merges_.erase(std::unique(merges_.begin(), merges_.end(),
                            [&](const Merge& a, const Merge& b) { return key(a) == key(b); }),
                merges_.end());
  row_begin_.assign(static_cast<std::size_t>(end_id) + 1, 0);
  for (const Merge& merge : merges_) ++row_begin_[static_cast<std::size_t>(merge.left) + 1];
  for (std::size_t i = 1; i < row_begin_.size(); ++i) row_begin_[i] += row_begin_[i - 1];
}

const Merge* MergeTable::find(std::int32_t left, std::int32_t right) const {
  const auto row = static_cast<std::size_t>(left);
  if (row + 1 >= row_begin_.size()) return nullptr;
  const Merge* begin = merges_.data() + row_begin_[row];
  const Merge* end = merges_.data() + row_begin_[row + 1];
  const Merge* place =
      std::lower_bound(begin, end, right, [](const Merge& m, std::int32_t id) { return m.right < id; });
  return place != end && place->right == right ? place : nullptr;
}

BpeModel read_bpe_model(const JsonPlace& place) {
  // Old files leave the type out; then the presence of merges tells BPE.
  if (const auto type = place.find("type"); type && type->as_string() != "BPE")
    refuse_component(place, "model");
  if (!place.find("merges")) throw Error("{} has no \"merges\"; only BPE models are supported", place.where);
  if (const auto dropout = place.find("dropout")) {
    if (!dropout->value.is_number() || dropout->value.get<double>() != 0)
      throw Error("{} is not supported; null or 0 would be right", dropout->where);
  }
  refuse_affix(place, "continuing_subword_prefix");
  refuse_affix(place, "end_of_word_suffix");
  BpeModel model;
  model.where = place.where;
  if (const auto unk = place.find("unk_token")) model.unk_token = unk->as_string();
  model.fuse_unk = place.bool_or("fuse_unk", false);
  model.byte_fallback = place.bool_or("byte_fallback", false);
  model.ignore_merges = place.bool_or("ignore_merges", false);
  model.vocabulary = read_vocabulary(place.at("vocab"));
  finish_bpe_model(model, read_merges(place.at("merges"), model.vocabulary));
  return model;
}

void finish_bpe_model(BpeModel& model, const std::vector<std::pair<std::string, std::string>>& pairs) {
  const Vocabulary& vocabulary = model.vocabulary;
  std::vector<Merge> merges;
  merges.reserve(pairs.size());
  // Characters that vanish would let the marks on their two sides merge.
  model.cut_before_spaces =
      vocabulary.id_of(space_mark).has_value() && model.unk_token && !model.ignore_merges;
  std::string merged;
  for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
    const auto& [left, right] = pairs[rank];
    merged.assign(left).append(right);
    merges.push_back({require_id(vocabulary, left, rank, model.where),
                      require_id(vocabulary, right, rank, model.where), static_cast<std::uint32_t>(rank),
                      require_id(vocabulary, merged, rank, model.where)});
    if (model.cut_before_spaces && has_inner_space_mark(merged)) model.cut_before_spaces = false;
  }
  model.merges = MergeTable(std::move(merges), vocabulary.end_id());
  for (unsigned byte = 0; byte < 256; ++byte)
    model.byte_ids[byte] = vocabulary.id_of(fmt::format("<0x{:02X}>", byte));
}

void BpeEncoder::encode(std::string_view piece, std::vector<std::int32_t>& ids) {
  if (!model_.cut_before_spaces) return encode_stretch(piece, ids);
  // Exact, since no token reaches over such a cut, and it lets the cache see words instead of whole texts.
  std::size_t begin = 0;
  for (std::size_t at = piece.find(space_mark); at != std::string_view::npos;
       at = piece.find(space_mark, at + space_mark.size())) {
    const bool follows_mark =
        at >= space_mark.size() && piece.substr(at - space_mark.size(), space_mark.size()) == space_mark;
    if (at == begin || follows_mark) continue;
    encode_stretch(piece.substr(begin, at - begin), ids);
    begin = at;
  }
  encode_stretch(piece.substr(begin), ids);
}

void BpeEncoder::encode_stretch(std::string_view piece, std::vector<std::int32_t>& ids) {
  if (piece.empty()) return;
  if (piece.size() > PieceCache::longest_piece) return encode_new(piece, ids);
  if (cache_.find(piece, ids)) return;
  const std::size_t first = ids.size();
  encode_new(piece, ids);
  cache_.add(piece, std::span(ids).subspan(first));
}

void BpeEncoder::encode_new(std::string_view piece, std::vector<std::int32_t>& ids) {
  if (model_.ignore_merges) {
    if (const auto id = model_.vocabulary.id_of(piece)) {
      ids.push_back(*id);
      return;
    }
  }
  start_symbols(piece);
  merge_symbols();
  for (const Symbol& symbol : symbols_)
    if (!symbol.is_gone) ids.push_back(symbol.id);
}

// One symbol for each character. An unknown character becomes its bytes if all of them have tokens, else unk.
// The pending unk is written before the next known character but not before bytes: so does the original.
void BpeEncoder::start_symbols(std::string_view piece) {
  symbols_.clear();
  if (piece.size() > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()))
    throw Error("{}: a piece of {} bytes is too long to encode", model_.where, piece.size());
  std::optional<std::int32_t> pending_unk;
  while (!piece.empty()) {
    const std::string_view character = piece.substr(0, std::max<std::size_t>(1, decode_utf8(piece).length));
    piece.remove_prefix(character.size());
    if (const auto id = model_.vocabulary.id_of(character)) {
      if (pending_unk) push_symbol(*std::exchange(pending_unk, std::nullopt));
      push_symbol(*id);
    } else if (model_.byte_fallback && push_bytes(character)) {
      continue;
    } else if (model_.unk_token) {
      if (pending_unk && !model_.fuse_unk) push_symbol(*pending_unk);
      pending_unk = unk_id();
    }
  }
  if (pending_unk) push_symbol(*pending_unk);
}

void BpeEncoder::push_symbol(std::int32_t id) {
  const auto index = static_cast<std::int32_t>(symbols_.size());
  if (index > 0) symbols_.back().next = index;
  symbols_.push_back({id, index - 1, -1, false});
}

bool BpeEncoder::push_bytes(std::string_view character) {
  for (const char byte : character)
    if (!model_.byte_ids[static_cast<unsigned char>(byte)]) return false;
  for (const char byte : character) push_symbol(*model_.byte_ids[static_cast<unsigned char>(byte)]);
  return true;
}

std::int32_t BpeEncoder::unk_id() const {
  const auto id = model_.vocabulary.id_of(*model_.unk_token);
  if (!id)
    throw Error("{}: the text has a character without a token, and unk_token {} is not in the vocabulary",
                model_.where, json_line(Json(*model_.unk_token)));
  return *id;
}

void BpeEncoder::merge_symbols() {
  heap_.clear();
  for (std::size_t i = 0; i < symbols_.size(); ++i) {
    const Symbol& symbol = symbols_[i];
    if (symbol.next < 0) continue;
    const Merge* merge = model_.merges.find(symbol.id, symbols_[static_cast<std::size_t>(symbol.next)].id);
    if (merge != nullptr) heap_.push_back({merge->rank, static_cast<std::int32_t>(i), merge->merged});
  }
  std::make_heap(heap_.begin(), heap_.end());
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    const Candidate best = heap_.back();
    heap_.pop_back();
    merge_pair(best);
  }
}

void BpeEncoder::merge_pair(const Candidate& best) {
  Symbol& left = symbols_[static_cast<std::size_t>(best.position)];
  if (left.is_gone || left.next < 0) return;
  Symbol& right = symbols_[static_cast<std::size_t>(left.next)];
  // Neighbours may have changed since the candidate was written down.
  const Merge* merge = model_.merges.find(left.id, right.id);
  if (merge == nullptr || merge->merged != best.merged) return;
  left.id = best.merged;
  left.next = right.next;
  right.is_gone = true;
  if (left.next >= 0) symbols_[static_cast<std::size_t>(left.next)].previous = best.position;
  if (left.previous >= 0) push_candidate(left.previous);
  push_candidate(best.position);
}

void BpeEncoder::push_candidate(std::int32_t position) {
  const Symbol& left = symbols_[static_cast<std::size_t>(position)];
  if (left.next < 0) return;
  const Merge* merge = model_.merges.find(left.id, symbols_[static_cast<std::size_t>(left.next)].id);
  if (merge == nullptr) return;
  heap_.push_back({merge->rank, position, merge->merged});
  std::push_heap(heap_.begin(), heap_.end());
}

}  // namespace sinkscope
