// Text files read in pieces of whole lines, for training: large files are never in memory as a whole.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

/// Consecutive lines of one file, not looked at yet.
struct TextChunk {
  std::string bytes;
  std::size_t file = 0;        // index in the list of files
  std::uint64_t offset = 0;    // of the first byte in its file
  std::uint64_t line = 1;      // number of its first line, from 1
  bool is_json_lines = false;  // the file's name ends in .jsonl
};

/// Hands out the files' contents in order. Where a file is cut depends on the file alone: plain text behind a
/// line's end that no white space follows, where every pattern of a pre-tokenizer in use ends a word
/// (GPT-2's, which looks ahead, then takes the newlines of a blank line as one word instead of two); .jsonl
/// behind any line. Not for several threads at once.
class TrainingTextReader {
 public:
  /// Throws Error naming the first file that is missing, a directory, or not readable. Pipes are read.
  explicit TrainingTextReader(std::vector<std::filesystem::path> files);

  /// The next chunk, about a MiB or one longer line; false at the end of the last file. Throws Error naming a
  /// file that cannot be read or has no place to be cut in 1 GiB.
  bool next(TextChunk& chunk);

  /// Bytes of all files; pipes count as nothing.
  std::uint64_t total_bytes() const { return total_bytes_; }
  /// Bytes handed out so far.
  std::uint64_t read_bytes() const { return read_bytes_; }

 private:
  bool open_next_file();
  bool read_block();
  void hand_out(std::size_t size, TextChunk& chunk);

  std::vector<std::filesystem::path> files_;
  std::uint64_t total_bytes_ = 0;
  std::uint64_t read_bytes_ = 0;
  std::ifstream input_;
  std::string pending_;       // read, not handed out
  std::size_t opened_ = 0;    // files so far
  std::uint64_t offset_ = 0;  // of pending_ in its file
  std::uint64_t line_ = 1;    // at the begin of pending_
};

/// A text, or an answer to a prompt.
struct TrainingText {
  std::optional<std::string> prompt;
  std::string text;
};

/// The texts in a chunk: itself, or of .jsonl the `text` of each line, or its `prompt` (or `question`) and
/// its `answer`. `name` is the file's. Throws Error naming the line and byte that are no UTF-8, or the line
/// that is no such object.
std::vector<TrainingText> training_texts_of(TextChunk chunk, const std::string& name);

/// The same with prompts as texts of their own before their answers.
std::vector<std::string> texts_of(TextChunk chunk, const std::string& name);

}  // namespace sinkscope
