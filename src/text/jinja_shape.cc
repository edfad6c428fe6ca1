#include "text/jinja_shape.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace sinkscope {
namespace {

using Lexemes = std::vector<std::string>;

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Text between tags is written as a lexeme that begins with '#', a string as one that begins with a quote.
class Lexer {
 public:
  explicit Lexer(std::string_view program) : program_(program) {}

  Lexemes lex() {
    while (position_ < program_.size()) {
      const std::size_t tag = next_tag();
      lex_data(tag);
      if (tag < program_.size()) lex_tag();
    }
    return std::move(lexemes_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t at = program_.find('{', position_); at != std::string_view::npos;
         at = program_.find('{', at + 1)) {
      const char kind = at + 1 < program_.size() ? program_[at + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return program_.size();
  }

  // The text up to the tag, less the white space that the tags on its two sides take.
  void lex_data(std::size_t tag) {
    std::string_view data = program_.substr(position_, tag - position_);
    if (trim_after_) {
      while (!data.empty() && is_space(data.front())) data.remove_prefix(1);
    } else if (after_block_ && !data.empty() && data.front() == '\n') {
      data.remove_prefix(1);
    }
    const bool before_block = tag + 1 < program_.size() && program_[tag + 1] != '{';
    if (tag + 2 < program_.size() && program_[tag + 2] == '-') {
      while (!data.empty() && is_space(data.back())) data.remove_suffix(1);
    } else if (before_block) {
      // lstrip_blocks: blanks from the start of the line to a block.
      const std::size_t last = data.find_last_not_of(" \t");
      const bool at_line_start =
          last == std::string_view::npos ? after_block_ || position_ == 0 : data[last] == '\n';
      if (at_line_start) data = data.substr(0, last == std::string_view::npos ? 0 : last + 1);
    }
    if (!data.empty()) lexemes_.push_back("#" + std::string(data));
    position_ = tag;
  }

  void lex_tag() {
    const char kind = program_[position_ + 1];
    const std::string close = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
    if (kind != '#') lexemes_.emplace_back(program_.substr(position_, 2));
    position_ += 2;
    if (position_ < program_.size() && (program_[position_] == '-' || program_[position_] == '+'))
      ++position_;
    bool minus = false;
    while (position_ < program_.size() && program_.substr(position_, 2) != close) {
      minus = program_[position_] == '-' && program_.substr(position_ + 1, 2) == close;
      if (kind == '#' || minus || is_space(program_[position_]))
        ++position_;
      else
        lex_lexeme();
    }
    if (kind != '#') lexemes_.push_back(close);
    position_ = std::min(position_ + 2, program_.size());
    trim_after_ = minus;
    after_block_ = kind != '{';
  }

  void lex_lexeme() {
    const char c = program_[position_];
    if (c == '\'' || c == '"') return lex_string(c);
    std::size_t end = position_ + 1;
    if (is_name_character(c))
      while (end < program_.size() && is_name_character(program_[end])) ++end;
    else if (program_.substr(position_, 2) == "==")
      end = position_ + 2;
    lexemes_.emplace_back(program_.substr(position_, end - position_));
    position_ = end;
  }

  void lex_string(char quote) {
    std::string text = "'";
    for (++position_; position_ < program_.size() && program_[position_] != quote; ++position_) {
      char c = program_[position_];
      if (c == '\\' && position_ + 1 < program_.size()) {
        c = program_[++position_];
        c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
      }
      text.push_back(c);
    }
    if (position_ < program_.size()) ++position_;
    lexemes_.push_back(std::move(text));
  }

  std::string_view program_;
  std::size_t position_ = 0;
  bool trim_after_ = false;   // the tag before ended with `-%}`
  bool after_block_ = false;  // and was a block or a comment
  Lexemes lexemes_;
};

bool is_name(const std::string& lexeme) { return !lexeme.empty() && is_name_character(lexeme[0]); }

bool matches(const Lexemes& lexemes, std::size_t at, const Lexemes& wanted) {
  return at + wanted.size() <= lexemes.size() &&
         std::equal(wanted.begin(), wanted.end(), lexemes.begin() + static_cast<std::ptrdiff_t>(at));
}

// m.role becomes m['role'], loop.first becomes loop['index0'] == 0.
Lexemes spell_members(const Lexemes& in) {
  Lexemes out;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool is_member = in[i] == "." && i > 0 && i + 1 < in.size() && is_name(in[i + 1]) &&
                           (i + 2 >= in.size() || in[i + 2] != "(");
    if (!is_member) {
      out.push_back(in[i]);
    } else if (in[i - 1] == "loop" && in[i + 1] == "first") {
      out.insert(out.end(), {"[", "'index0", "]", "==", "0"});
      ++i;
    } else {
      out.insert(out.end(), {"[", "'" + in[i + 1], "]"});
      ++i;
    }
  }
  return out;
}

void rename(Lexemes& lexemes, const std::string& from, const std::string& to) {
  for (std::string& lexeme : lexemes)
    if (lexeme == from) lexeme = to;
}

// `{% set a = messages %}` at the start goes, and a is called messages.
void drop_alias(Lexemes& lexemes) {
  if (lexemes.size() < 6 || !matches(lexemes, 0, {"{%", "set"}) || !is_name(lexemes[2]) ||
      !matches(lexemes, 3, {"=", "messages", "%}"}))
    return;
  const std::string alias = lexemes[2];
  lexemes.erase(lexemes.begin(), lexemes.begin() + 6);
  rename(lexemes, alias, "messages");
}

void name_loop_variable(Lexemes& lexemes) {
  for (std::size_t i = 0; i + 4 < lexemes.size(); ++i) {
    if (!matches(lexemes, i, {"{%", "for"}) || !is_name(lexemes[i + 2]) ||
        !matches(lexemes, i + 3, {"in", "messages"}))
      continue;
    const std::string variable = lexemes[i + 2];
    rename(lexemes, variable, "message");
    return;
  }
}

}  // namespace

std::string jinja_shape(std::string_view program) {
  Lexemes lexemes = spell_members(Lexer(program).lex());
  drop_alias(lexemes);
  name_loop_variable(lexemes);
  std::string shape;
  // A control character that no template holds keeps lexemes apart.
  for (const std::string& lexeme : lexemes) shape.append(lexeme).push_back('\x1F');
  return shape;
}

}  // namespace sinkscope
