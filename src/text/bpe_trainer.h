// Learns the merges of byte-level byte pair encoding (Sennrich et al. 2016, arXiv:1508.07909) from counted
// words, as Hugging Face's BpeTrainer does.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "text/word_counts.h"

namespace sinkscope {

/// Ids are those before special tokens: the 256 bytes in the order of the byte alphabet
/// (byte_alphabet_order), then what each merge makes, in order.
struct LearnedMerge {
  std::int32_t left = 0;
  std::int32_t right = 0;

  bool operator==(const LearnedMerge&) const = default;
};

struct LearnedBpe {
  std::vector<LearnedMerge> merges;
  std::uint64_t tokens = 0;  // that all words, each as often as it occurs, are cut into at the end
};

struct BpeTraining {
  std::size_t most_merges = 0;
  std::uint64_t min_frequency = 1;       // a pair that stands less often is not merged
  std::function<void(double)> progress;  // share of the merges made so far; may be empty
};

/// Merges, again and again, the pair of neighbouring tokens that stands most often, overlapping occurrences
/// counted (three times in `aaaa`), replaced from the left; of several the one with the lowest left id, then
/// the lowest right id. Ends after most_merges, or when no pair stands min_frequency times. No two merges
/// make the same string, so each merge is a new token. Time: n log n in the words' bytes, even for one long
/// word.
LearnedBpe train_bpe(const std::vector<CountedWord>& words, const BpeTraining& training);

}  // namespace sinkscope
