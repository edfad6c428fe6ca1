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

/// The tokens of a program, the last one `end`. trim_blocks and lstrip_blocks are on, as transformers has
/// them. `program` is valid UTF-8. Throws SyntaxError (syntax.h).
std::vector<Token> tokenize(std::string_view program);

}  // namespace sinkscope::jinja
