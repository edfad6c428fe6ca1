// How often each piece of the training text stands in it: all that a BPE trainer needs to know of a text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/regex.h"

namespace sinkscope {

/// A piece of text, as the pre-tokenizer cuts it, and its number of occurrences.
struct CountedWord {
  std::string bytes;
  std::uint64_t count = 0;

  bool operator==(const CountedWord&) const = default;
};

struct WordCounts {
  std::vector<CountedWord> words;  // in the order of their bytes
  std::uint64_t bytes = 0;         // of the texts, what was cut out included
};

struct WordCounting {
  Regex pattern;                     // its matches, and what lies between, are the words
  std::vector<std::string> cut_out;  // special tokens: where a text holds one, no word reaches across
  int threads = 1;
  std::function<void(double)> progress;  // share of the files read so far; may be empty
};

/// Counts the words of text files (see TrainingTextReader). The result does not depend on the number of
/// threads. Throws Error naming a file that holds no text, and of several broken lines the first.
WordCounts count_words(const std::vector<std::filesystem::path>& files, const WordCounting& counting);

}  // namespace sinkscope
