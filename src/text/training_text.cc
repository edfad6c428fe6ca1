#include "text/training_text.h"

#include <sinkscope/error.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/json.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t block_bytes = std::size_t{1} << 20;
constexpr std::size_t longest_chunk = std::size_t{1} << 30;

void check_file(const fs::path& file) {
  std::error_code ignored;
  if (fs::is_directory(file, ignored)) throw Error("{} is a directory, not a file", file.string());
  if (::access(file.c_str(), R_OK) != 0)
    throw Error("cannot open {}: {}", file.string(), std::strerror(errno));
}

bool starts_with_space(std::string_view text) {
  const DecodedChar c = decode_utf8(text);
  return c.length == 0 || is_white_space(c.code_point);  // a character that is not complete may be one
}

// The last place in text at or behind `from` where it may be cut; 0: none.
std::size_t last_cut(std::string_view text, std::size_t from, bool is_json_lines) {
  for (std::size_t end = text.size(); end > from;) {
    const std::size_t newline = text.rfind('\n', end - 1);
    if (newline == std::string_view::npos || newline < from) return 0;
    if (is_json_lines || !starts_with_space(text.substr(newline + 1))) return newline + 1;
    end = newline;
  }
  return 0;
}

void check_utf8(const TextChunk& chunk, const std::string& name) {
  const std::string_view text = chunk.bytes;
  std::uint64_t line = chunk.line;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text.substr(at));
    if (c.length == 0)
      throw Error("{} line {} is not UTF-8 at byte {} of the file (0x{:02X}); convert the file to UTF-8",
                  name, line, chunk.offset + at, static_cast<unsigned char>(text[at]));
    if (c.code_point == '\n') ++line;
    at += c.length;
  }
}

const std::string* string_field(const Json& object, const char* name) {
  const auto field = object.find(name);
  return field != object.end() && field->is_string() ? field->get_ptr<const std::string*>() : nullptr;
}

TrainingText text_of(const Json& value, const std::string& where) {
  const auto field = [&](const char* name) {
    return value.is_object() ? string_field(value, name) : nullptr;
  };
  if (const std::string* text = field("text")) return {std::nullopt, *text};
  const std::string* prompt = field("prompt");
  if (prompt == nullptr) prompt = field("question");
  const std::string* answer = field("answer");
  if (prompt == nullptr || answer == nullptr)
    throw Error("{} must hold a JSON object with a string `text`, or strings `prompt` and `answer`", where);
  return {*prompt, *answer};
}

std::vector<TrainingText> texts_of_lines(const TextChunk& chunk, const std::string& name) {
  std::vector<TrainingText> texts;
  const std::string_view bytes = chunk.bytes;
  std::uint64_t number = chunk.line;
  for (std::size_t begin = 0; begin < bytes.size(); ++number) {
    const std::size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string where = fmt::format("{} line {}", name, number);
    texts.push_back(text_of(parse_json(line, where), where));
  }
  return texts;
}

}  // namespace

TrainingTextReader::TrainingTextReader(std::vector<fs::path> files) : files_(std::move(files)) {
  for (const fs::path& file : files_) {
    check_file(file);
    std::error_code failed;
    const std::uintmax_t size = fs::file_size(file, failed);
    if (!failed) total_bytes_ += size;
  }
}

bool TrainingTextReader::open_next_file() {
  if (opened_ == files_.size()) return false;
  input_ = std::ifstream(files_[opened_], std::ios::binary);
  if (!input_) throw Error("cannot open {}: {}", files_[opened_].string(), std::strerror(errno));
  ++opened_;
  offset_ = 0;
  line_ = 1;
  return true;
}

// Appends a block to pending_; false at the file's end.
bool TrainingTextReader::read_block() {
  const std::size_t before = pending_.size();
  pending_.resize(before + block_bytes);
  input_.read(pending_.data() + before, block_bytes);
  pending_.resize(before + static_cast<std::size_t>(input_.gcount()));
  if (input_.bad()) throw Error("cannot read {}", files_[opened_ - 1].string());
  return pending_.size() > before;
}

void TrainingTextReader::hand_out(std::size_t size, TextChunk& chunk) {
  chunk.bytes.assign(pending_, 0, size);
  chunk.offset = offset_;
  chunk.line = line_;
  pending_.erase(0, size);
  offset_ += size;
  line_ += static_cast<std::uint64_t>(std::count(chunk.bytes.begin(), chunk.bytes.end(), '\n'));
  read_bytes_ += size;
}

bool TrainingTextReader::next(TextChunk& chunk) {
  while (true) {
    if (opened_ > 0) {
      chunk.file = opened_ - 1;
      chunk.is_json_lines = files_[chunk.file].extension() == ".jsonl";
    }
    std::size_t searched = 0;
    while (opened_ > 0 && read_block()) {
      // A newline that ended the last block has its next character only now.
      const std::size_t cut = last_cut(pending_, searched, chunk.is_json_lines);
      if (cut > 0) {
        hand_out(cut, chunk);
        return true;
      }
      if (pending_.size() > longest_chunk)
        throw Error("{} line {} goes on for more than 1 GiB; texts of shorter lines would be right",
                    files_[chunk.file].string(), line_);
      searched = pending_.size() - std::min<std::size_t>(pending_.size(), 8);
    }
    if (!pending_.empty()) {
      hand_out(pending_.size(), chunk);
      return true;
    }
    if (!open_next_file()) return false;
  }
}

std::vector<TrainingText> training_texts_of(TextChunk chunk, const std::string& name) {
  check_utf8(chunk, name);
  if (chunk.is_json_lines) return texts_of_lines(chunk, name);
  std::vector<TrainingText> texts;
  texts.push_back({std::nullopt, std::move(chunk.bytes)});
  return texts;
}

std::vector<std::string> texts_of(TextChunk chunk, const std::string& name) {
  std::vector<std::string> texts;
  for (TrainingText& text : training_texts_of(std::move(chunk), name)) {
    if (text.prompt) texts.push_back(std::move(*text.prompt));
    texts.push_back(std::move(text.text));
  }
  return texts;
}

}  // namespace sinkscope
