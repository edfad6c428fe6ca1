// The text of a template to its syntax tree.
#pragma once

#include <string_view>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace sinkscope::jinja {

/// The statements of a program (valid UTF-8). Throws SyntaxError for what is no Jinja, for statements that
/// are not supported and for nesting above max_syntax_depth. Filters, tests and functions are looked up when
/// they run: a branch that is not taken may name unknown ones.
Block parse(std::string_view program, const Dialect& dialect);

}  // namespace sinkscope::jinja
