#include "text/jinja/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "text/jinja/python_text.h"
#include "text/jinja/syntax.h"
#include "text/unicode.h"

namespace sinkscope::jinja {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_'; }

// Every line ends in \n.
std::string normalize_newlines(std::string_view program) {
  std::string out;
  out.reserve(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (program[i] != '\r') {
      out.push_back(program[i]);
      continue;
    }
    out.push_back('\n');
    if (i + 1 < program.size() && program[i + 1] == '\n') ++i;
  }
  return out;
}

class Lexer {
 public:
  Lexer(std::string_view program, bool trim_blocks) : program_(program), trim_blocks_(trim_blocks) {}

  std::vector<Token> tokenize() {
    while (position_ < program_.size()) {
      const std::size_t tag = next_tag(position_);
      if (tag == std::string_view::npos) {
        push(TokenKind::data, std::string(program_.substr(position_)));
        break;
      }
      read_tag(tag);
    }
    push(TokenKind::end, "");
    return std::move(tokens_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError(line_, what); }

  void push(TokenKind kind, std::string text) {
    if (kind == TokenKind::data && text.empty()) return;
    tokens_.push_back({kind, std::move(text), line_});
  }

  bool at(std::string_view text) const { return program_.substr(position_, text.size()) == text; }

  // Everything before `end` is done with.
  void move_to(std::size_t end) {
    line_ += static_cast<int>(std::count(program_.begin() + static_cast<std::ptrdiff_t>(position_),
                                         program_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    position_ = end;
  }

  std::size_t next_tag(std::size_t from) const {
    for (std::size_t at = program_.find('{', from); at != std::string_view::npos;
         at = program_.find('{', at + 1)) {
      const char kind = at + 1 < program_.size() ? program_[at + 1] : '\0';
      if (kind == '{' || kind == '%' || kind == '#') return at;
    }
    return std::string_view::npos;
  }

  std::size_t skip_space(std::size_t at) const {
    return program_.size() - strip_space(program_.substr(at), Ends::left).size();
  }

  // The text from position_ to the tag, less what the tag takes off its end. `sign` is the tag's - or +.
  void push_data(std::size_t tag, char sign, bool is_output) {
    std::string_view data = program_.substr(position_, tag - position_);
    if (sign == '-') {
      data = strip_space(data, Ends::right);
    } else if (trim_blocks_ && sign != '+' && !is_output) {
      // lstrip_blocks: white space between the start of the line and the tag.
      const std::size_t newline = data.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const bool at_line_start = line > 0 || at_line_start_;
      if (at_line_start && strip_space(data.substr(line), Ends::left).empty()) data = data.substr(0, line);
    }
    push(TokenKind::data, std::string(data));
    move_to(tag);
  }

  // Moves behind the end of a tag at position_, `-` and the newline that trim_blocks takes included.
  void pass_tag_end(std::string_view close) {
    const std::size_t begin = position_;
    const bool minus = program_[position_] == '-';
    std::size_t end = position_ + close.size() + (minus || program_[position_] == '+' ? 1 : 0);
    if (minus)
      end = skip_space(end);
    else if (trim_blocks_ && close != "}}" && end == begin + close.size() && end < program_.size() &&
             program_[end] == '\n')
      ++end;
    move_to(end);
    at_line_start_ = program_[end - 1] == '\n';
  }

  bool at_tag_end(std::string_view close) const {
    return at(close) || ((program_[position_] == '-' || (program_[position_] == '+' && close != "}}")) &&
                         program_.substr(position_ + 1, close.size()) == close);
  }

  void read_tag(std::size_t tag) {
    const char kind = program_[tag + 1];
    const char next = tag + 2 < program_.size() ? program_[tag + 2] : '\0';
    const char sign = next == '-' || next == '+' ? next : '\0';
    push_data(tag, sign, kind == '{');
    move_to(tag + (sign == '\0' ? 2 : 3));
    if (kind == '#') return pass_comment();
    if (kind == '%' && read_raw()) return;
    const bool is_output = kind == '{';
    push(is_output ? TokenKind::output_begin : TokenKind::block_begin, "");
    read_inside(is_output ? "}}" : "%}");
    push(is_output ? TokenKind::output_end : TokenKind::block_end, "");
    pass_tag_end(is_output ? "}}" : "%}");
  }

  void pass_comment() {
    const std::size_t close = program_.find("#}", position_);
    if (close == std::string_view::npos) fail("a comment {# has no end #}");
    const bool signed_end = close > position_ && (program_[close - 1] == '-' || program_[close - 1] == '+');
    move_to(signed_end ? close - 1 : close);
    pass_tag_end("#}");
  }

  // The end of `WORD %}` with its spaces and sign, if that stands at `at`; else npos.
  std::size_t match_word_tag(std::size_t at, std::string_view word) const {
    at = skip_space(at);
    if (program_.substr(at, word.size()) != word) return std::string_view::npos;
    at = skip_space(at + word.size());
    if (at >= program_.size()) return std::string_view::npos;
    const std::size_t sign = program_[at] == '-' || program_[at] == '+' ? 1 : 0;
    return program_.substr(at + sign, 2) == "%}" ? at : std::string_view::npos;
  }

  // {% raw %}...{% endraw %}: position_ is behind the {%.
  bool read_raw() {
    const std::size_t tag_end = match_word_tag(position_, "raw");
    if (tag_end == std::string_view::npos || program_[tag_end] == '+') return false;
    // trim_blocks does not touch the newline behind {% raw %}.
    const bool minus = program_[tag_end] == '-';
    move_to(minus ? skip_space(tag_end + 3) : tag_end + 2);
    at_line_start_ = program_[position_ - 1] == '\n';
    for (std::size_t tag = program_.find("{%", position_); tag != std::string_view::npos;
         tag = program_.find("{%", tag + 1)) {
      const char next = tag + 2 < program_.size() ? program_[tag + 2] : '\0';
      const char sign = next == '-' || next == '+' ? next : '\0';
      const std::size_t end = match_word_tag(tag + (sign == '\0' ? 2 : 3), "endraw");
      if (end == std::string_view::npos) continue;
      push_data(tag, sign, false);
      move_to(end);
      pass_tag_end("%}");
      return true;
    }
    fail("{% raw %} has no {% endraw %}");
  }

  // Names, numbers, strings and symbols up to the tag's end, which does not count inside brackets.
  void read_inside(std::string_view close) {
    std::string open;
    while (true) {
      move_to(skip_space(position_));
      if (position_ >= program_.size()) fail(fmt::format("a tag has no end {}", close));
      if (open.empty() && at_tag_end(close)) return;
      const char c = program_[position_];
      if (is_digit(c))
        read_number();
      else if (is_word(c))
        read_name();
      else if (c == '\'' || c == '"')
        read_string(c);
      else
        read_symbol(open);
    }
  }

  void read_name() {
    std::size_t end = position_;
    while (end < program_.size() && is_word(program_[end])) ++end;
    push(TokenKind::name, std::string(program_.substr(position_, end - position_)));
    move_to(end);
  }

  std::size_t digits_end(std::size_t at) const {
    while (at < program_.size() &&
           (is_digit(program_[at]) ||
            (program_[at] == '_' && at + 1 < program_.size() && is_digit(program_[at + 1]))))
      ++at;
    return at;
  }

  void read_number() {
    std::size_t end = digits_end(position_);
    bool is_real = false;
    const bool behind_dot = position_ > 0 && program_[position_ - 1] == '.';
    if (!behind_dot && end + 1 < program_.size() && program_[end] == '.' && is_digit(program_[end + 1])) {
      end = digits_end(end + 1);
      is_real = true;
    }
    if (!behind_dot && end < program_.size() && (program_[end] == 'e' || program_[end] == 'E')) {
      const std::size_t sign =
          end + 1 < program_.size() && (program_[end + 1] == '+' || program_[end + 1] == '-');
      if (end + 1 + sign < program_.size() && is_digit(program_[end + 1 + sign])) {
        end = digits_end(end + 1 + sign);
        is_real = true;
      }
    }
    if (end < program_.size() && is_word(program_[end]))
      fail(fmt::format("\"{}\" is no number that is supported",
                       program_.substr(position_, end + 1 - position_)));
    std::string text(program_.substr(position_, end - position_));
    std::erase(text, '_');
    if (!is_real && text.size() > 1 && text[0] == '0' && text.find_first_not_of('0') != std::string::npos)
      fail(fmt::format("the number {} begins with 0", text.substr(0, 40)));
    push(is_real ? TokenKind::real : TokenKind::integer, std::move(text));
    move_to(end);
  }

  void read_symbol(std::string& open) {
    constexpr std::array<std::string_view, 27> symbols{"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                       "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                       ">",  "<",  "=",  ".",  ":",  "|",  ",", ";", "!"};
    const auto* symbol =
        std::find_if(symbols.begin(), symbols.end(), [&](std::string_view s) { return at(s); });
    if (symbol == symbols.end() || *symbol == "!") {
      const std::size_t length = std::max<std::size_t>(1, decode_utf8(program_.substr(position_)).length);
      fail(fmt::format("the character \"{}\" has no meaning inside a tag",
                       program_.substr(position_, length)));
    }
    const char c = symbol->front();
    if (c == '{' || c == '(' || c == '[') open.push_back(c == '{' ? '}' : c == '(' ? ')' : ']');
    if (c == '}' || c == ')' || c == ']') {
      if (open.empty() || open.back() != c) fail(fmt::format("\"{}\" closes nothing", c));
      open.pop_back();
    }
    push(TokenKind::symbol, std::string(*symbol));
    move_to(position_ + symbol->size());
  }

  void read_string(char quote) {
    std::string text;
    std::size_t at = position_ + 1;
    while (at < program_.size() && program_[at] != quote) {
      if (program_[at] == '\\')
        at = read_escape(at + 1, text);
      else
        text.push_back(program_[at++]);
    }
    if (at >= program_.size()) fail("a string has no end");
    push(TokenKind::text, std::move(text));
    move_to(at + 1);
  }

  // Python's escapes; `at` is behind the backslash. Returns the position behind the escape.
  std::size_t read_escape(std::size_t at, std::string& text) const {
    if (at >= program_.size()) fail("a string has no end");
    const char c = program_[at];
    constexpr std::string_view letters = "abfnrtv\\'\"";
    constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\'\"";
    if (const std::size_t index = letters.find(c); index != std::string_view::npos) {
      text.push_back(meanings[index]);
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c == 'x') return read_code_point(at + 1, 2, 16, text);
    if (c == 'u') return read_code_point(at + 1, 4, 16, text);
    if (c == 'U') return read_code_point(at + 1, 8, 16, text);
    if (c >= '0' && c <= '7') {
      std::size_t digits = 1;
      while (digits < 3 && at + digits < program_.size() && program_[at + digits] >= '0' &&
             program_[at + digits] <= '7')
        ++digits;
      return read_code_point(at, digits, 8, text);
    }
    if (c == 'N' || static_cast<unsigned char>(c) >= 0x80)
      fail("a string has an escape that is not supported: \\N, or a backslash before a letter beyond ASCII");
    text.append(1, '\\').append(1, c);
    return at + 1;
  }

  std::size_t read_code_point(std::size_t at, std::size_t digits, unsigned base, std::string& text) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      const char c = at + i < program_.size() ? program_[at + i] : '\0';
      const std::size_t digit =
          std::string_view("0123456789abcdef").find(c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c);
      if (digit >= base) fail(fmt::format("an escape in a string needs {} digits", digits));
      value = value * base + static_cast<std::uint32_t>(digit);
    }
    if (value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF))
      fail(fmt::format("the escape for U+{:04X} in a string is no character", value));
    append_utf8(text, value);
    return at + digits;
  }

  std::string_view program_;
  bool trim_blocks_;
  std::size_t position_ = 0;
  int line_ = 1;
  bool at_line_start_ = true;  // the tag before, if any, ended with a newline
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view program, const Dialect& dialect) {
  std::string normal = normalize_newlines(program);
  if (!dialect.keep_trailing_newline && normal.ends_with('\n')) normal.pop_back();
  return Lexer(normal, dialect.trim_blocks).tokenize();
}

}  // namespace sinkscope::jinja
