// A template's text as tokens, with the white space around tags gone as Jinja has it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sinkscope::jinja {

enum class TokenKind {
  data,          // text between tags
  output_begin,  // {{
  output_end,
  block_begin,  // {%
  block_end,
  name,
  text,     // a string, its escapes resolved
  integer,  // as written, less underscores
  real,
  symbol,  // + ( == ...
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string text;
  int line = 1;
};

/// How Jinja2 is set up; the defaults are transformers' for chat templates.
struct Dialect {
  bool trim_blocks = true;             ///< the line feed behind a block tag goes, and the space before one
  bool keep_trailing_newline = false;  ///< one at the very end of the program stays
  bool strict = false;                 ///< printing an undefined value is an error, not ""
};

/// The tokens of a program, the last one `end`. `program` is valid UTF-8. Throws SyntaxError (syntax.h).
std::vector<Token> tokenize(std::string_view program, const Dialect& dialect);

}  // namespace sinkscope::jinja
