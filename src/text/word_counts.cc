#include "text/word_counts.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "text/added_tokens.h"
#include "text/pretokenizer.h"
#include "text/training_text.h"
#include "text/vocabulary.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

// What one thread counted.
struct Tally {
  StringMap<std::uint64_t> words;
  std::vector<std::uint64_t> bytes_of_file;
};

// Threads take chunks from one reader and count each for itself.
class Counter {
 public:
  Counter(const std::vector<fs::path>& files, const WordCounting& counting)
      : files_(files), counting_(counting), reader_(files) {
    pretokenizer_.emplace_back(Split{counting.pattern, SplitBehavior::isolated, false});
    for (const std::string& token : counting.cut_out) special_.push_back({.content = token});
    for (const AddedToken& token : special_) finder_.add(token.content, &token);
  }

  // Returns when there is nothing left, or after an error anywhere.
  void work(Tally& tally) {
    tally.bytes_of_file.resize(files_.size());
    std::uint64_t number = 0;
    try {
      for (TextChunk chunk; take(chunk, number);) count(std::move(chunk), tally);
    } catch (...) {
      fail(number, std::current_exception());
    }
  }

  void rethrow_first_error() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  bool take(TextChunk& chunk, std::uint64_t& number) {
    const std::lock_guard lock(mutex_);
    number = taken_++;
    if (error_ || !reader_.next(chunk)) return false;
    if (counting_.progress && reader_.total_bytes() > 0)
      counting_.progress(static_cast<double>(reader_.read_bytes()) /
                         static_cast<double>(reader_.total_bytes()));
    return true;
  }

  // Chunks are taken in order and each is finished, so the error kept at the end is the first one of the
  // files, however many threads there are.
  void fail(std::uint64_t number, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (error_ && failed_ < number) return;
    error_ = std::move(error);
    failed_ = number;
  }

  void count(TextChunk chunk, Tally& tally) const {
    const std::size_t file = chunk.file;
    for (const std::string& text : texts_of(std::move(chunk), files_[file].string())) {
      tally.bytes_of_file[file] += text.size();
      for (const TokenStretch& stretch : finder_.find(text))
        if (stretch.token == nullptr) count_words_of(stretch.span.of(text), tally.words);
    }
  }

  void count_words_of(std::string_view text, StringMap<std::uint64_t>& words) const {
    const Pieces pieces = pretokenize(pretokenizer_, std::string(text), true);
    for (const Span span : pieces.spans) {
      const std::string_view word = span.of(pieces.text);
      const auto known = words.find(word);
      if (known != words.end())
        ++known->second;
      else
        words.emplace(word, 1);
    }
  }

  const std::vector<fs::path>& files_;
  const WordCounting& counting_;
  Pretokenizer pretokenizer_;
  std::vector<AddedToken> special_;
  AddedTokenFinder finder_;

  std::mutex mutex_;  // for all that follows
  TrainingTextReader reader_;
  std::uint64_t taken_ = 0;
  std::exception_ptr error_;
  std::uint64_t failed_ = 0;  // number of the chunk that error_ is about
};

std::vector<CountedWord> sorted_words(StringMap<std::uint64_t>& counts) {
  std::vector<CountedWord> words;
  words.reserve(counts.size());
  while (!counts.empty()) {
    auto entry = counts.extract(counts.begin());
    words.push_back({std::move(entry.key()), entry.mapped()});
  }
  std::sort(words.begin(), words.end(),
            [](const CountedWord& a, const CountedWord& b) { return a.bytes < b.bytes; });
  return words;
}

WordCounts joined(std::vector<Tally> tallies, const std::vector<fs::path>& files) {
  WordCounts result;
  for (std::size_t file = 0; file < files.size(); ++file) {
    std::uint64_t bytes = 0;
    for (const Tally& tally : tallies) bytes += tally.bytes_of_file[file];
    if (bytes == 0) throw Error("{} holds no text; leave it out or give one that does", files[file].string());
    result.bytes += bytes;
  }
  StringMap<std::uint64_t>& all = tallies.front().words;
  for (std::size_t i = 1; i < tallies.size(); ++i)
    for (const auto& [word, count] : tallies[i].words) all[word] += count;
  result.words = sorted_words(all);
  return result;
}

}  // namespace

WordCounts count_words(const std::vector<fs::path>& files, const WordCounting& counting) {
  Counter counter(files, counting);
  std::vector<Tally> tallies(static_cast<std::size_t>(std::max(1, counting.threads)));
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < tallies.size(); ++i)
      others.emplace_back([&counter, &tally = tallies[i]] { counter.work(tally); });
    counter.work(tallies.front());
  }
  counter.rethrow_first_error();
  return joined(std::move(tallies), files);
}

}  // namespace sinkscope
