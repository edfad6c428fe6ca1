#include "text/bpe_trainer.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <unordered_map>
#include <utility>

#include "text/byte_level.h"

namespace sinkscope {
namespace {

using Place = std::uint32_t;  // index of a symbol
constexpr Place nowhere = std::numeric_limits<Place>::max();
constexpr std::int32_t merged_away = -1;
constexpr std::size_t merges_between_reports = 64;

// Both ids in one number, ordered as the pair is.
using PairKey = std::uint64_t;
PairKey key_of(std::int32_t left, std::int32_t right) {
  return static_cast<PairKey>(left) << 32 | static_cast<std::uint32_t>(right);
}
LearnedMerge pair_of(PairKey key) {
  return {static_cast<std::int32_t>(key >> 32), static_cast<std::int32_t>(key & 0xFFFFFFFFU)};
}

struct KeyHash {
  std::size_t operator()(PairKey key) const {  // the finaliser of MurmurHash3
    key = (key ^ key >> 33) * 0xFF51AFD7ED558CCDULL;
    key = (key ^ key >> 33) * 0xC4CEB9FE1A85EC53ULL;
    return key ^ key >> 33;
  }
};

struct PairState {
  std::uint64_t count = 0;
  std::vector<Place> places;  // of the left symbol, ascending; some may have gone
};

// A pair with the count it had when it was put into the queue. On top: the highest count, then the lowest
// ids.
struct Candidate {
  std::uint64_t count = 0;
  PairKey key = 0;
  bool operator<(const Candidate& other) const {
    return count != other.count ? count < other.count : key > other.key;
  }
};

// A token of a word; the tokens of a word are a list linked by index, so that a merge costs its occurrences
// and not the length of the words they are in.
struct Symbol {
  std::int32_t id = merged_away;
  std::uint32_t word = 0;
  Place previous = nowhere;
  Place next = nowhere;
};

// A pair of ids comes into being in one step only: at the start, or in the step that makes the younger of its
// two tokens. So it enters the queue once, with all its places, and from then on its count only falls.
class Trainer {
 public:
  Trainer(const std::vector<CountedWord>& words, const BpeTraining& training)
      : words_(words), least_(std::max<std::uint64_t>(1, training.min_frequency)) {
    start_symbols();
    for (Place place = 0; place < symbols_.size(); ++place)
      if (symbols_[place].next != nowhere) add_pair(place);
    queue_new_pairs();
  }

  // The next merge; false when no pair is frequent enough.
  bool step(LearnedBpe& learned) {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      const auto state = pairs_.find(best.key);
      if (state == pairs_.end()) continue;
      if (state->second.count != best.count) {
        enqueue(best.key, state->second.count);
        continue;
      }
      // Out of the map: merging removes the pair from it.
      const std::vector<Place> places = std::move(state->second.places);
      merge(best.key, places, static_cast<std::int32_t>(256 + learned.merges.size()));
      learned.merges.push_back(pair_of(best.key));
      return true;
    }
    return false;
  }

  std::uint64_t tokens() const { return tokens_; }

 private:
  void start_symbols() {
    std::array<std::int32_t, 256> id_of{};
    for (std::int32_t id = 0; const unsigned char byte : byte_alphabet_order()) id_of[byte] = id++;
    std::size_t bytes = 0;
    for (const CountedWord& word : words_) bytes += word.bytes.size();
    if (bytes >= nowhere)
      throw Error("the different words of the text have {} bytes together; fewer than {} can be learnt from",
                  bytes, nowhere);
    symbols_.reserve(bytes);
    for (std::uint32_t index = 0; index < words_.size(); ++index) {
      const CountedWord& word = words_[index];
      const auto begin = static_cast<Place>(symbols_.size()),
                 end = static_cast<Place>(begin + word.bytes.size());
      for (Place place = begin; place < end; ++place)
        symbols_.push_back({.id = id_of[static_cast<unsigned char>(word.bytes[place - begin])],
                            .word = index,
                            .previous = place == begin ? nowhere : place - 1,
                            .next = place + 1 == end ? nowhere : place + 1});
      tokens_ += word.count * word.bytes.size();
    }
  }

  PairKey key_at(Place left) const { return key_of(symbols_[left].id, symbols_[symbols_[left].next].id); }

  void add_pair(Place left) {
    const PairKey key = key_at(left);
    PairState& state = pairs_[key];
    if (state.count == 0) new_pairs_.push_back(key);
    state.count += words_[symbols_[left].word].count;
    state.places.push_back(left);
  }

  void remove_pair(Place left) {
    const auto state = pairs_.find(key_at(left));
    state->second.count -= words_[symbols_[left].word].count;
    // Without occurrences all its places have gone too.
    if (state->second.count == 0) pairs_.erase(state);
  }

  void merge(PairKey key, const std::vector<Place>& places, std::int32_t id) {
    const LearnedMerge pair = pair_of(key);
    for (const Place place : places) {
      const Symbol& left = symbols_[place];
      if (left.id == pair.left && left.next != nowhere && symbols_[left.next].id == pair.right)
        merge_at(place, id);
    }
    queue_new_pairs();
  }

  void merge_at(Place place, std::int32_t id) {
    Symbol& left = symbols_[place];
    Symbol& right = symbols_[left.next];
    if (left.previous != nowhere) remove_pair(left.previous);
    if (right.next != nowhere) remove_pair(left.next);
    remove_pair(place);
    left.id = id;
    right.id = merged_away;
    left.next = right.next;
    if (left.next != nowhere) symbols_[left.next].previous = place;
    if (left.previous != nowhere) add_pair(left.previous);
    if (left.next != nowhere) add_pair(place);
    tokens_ -= words_[left.word].count;
  }

  // A pair that came, went and came again within a step is in the list, and in the queue, more than once:
  // after its merge it is no longer in pairs_.
  void queue_new_pairs() {
    for (const PairKey key : new_pairs_)
      if (const auto state = pairs_.find(key); state != pairs_.end()) enqueue(key, state->second.count);
    new_pairs_.clear();
  }

  void enqueue(PairKey key, std::uint64_t count) {
    if (count >= least_) queue_.push({count, key});
  }

  const std::vector<CountedWord>& words_;
  std::uint64_t least_;
  std::vector<Symbol> symbols_;
  std::unordered_map<PairKey, PairState, KeyHash> pairs_;  // those that occur
  std::vector<PairKey> new_pairs_;                         // of this step
  std::priority_queue<Candidate> queue_;
  std::uint64_t tokens_ = 0;
};

}  // namespace

LearnedBpe train_bpe(const std::vector<CountedWord>& words, const BpeTraining& training) {
  Trainer trainer(words, training);
  LearnedBpe learned;
  while (learned.merges.size() < training.most_merges && trainer.step(learned))
    if (training.progress && learned.merges.size() % merges_between_reports == 0)
      training.progress(static_cast<double>(learned.merges.size()) /
                        static_cast<double>(training.most_merges));
  learned.tokens = trainer.tokens();
  return learned;
}

}  // namespace sinkscope
