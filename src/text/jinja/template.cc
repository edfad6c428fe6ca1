#include "text/jinja/template.h"

#include <sinkscope/error.h>

#include "text/jinja/evaluator.h"
#include "text/jinja/parser.h"
#include "text/unicode.h"

namespace sinkscope::jinja {

Template::Template(std::string_view program, std::string where, std::string advice, const Dialect& dialect)
    : where_(std::move(where)), advice_(std::move(advice)), strict_(dialect.strict) {
  if (!is_valid_utf8(program)) throw Error("{} is not valid UTF-8", where_);
  try {
    body_ = parse(program, dialect);
  } catch (const SyntaxError& error) {
    throw Error("{} line {}: {}; {}", where_, error.line(), error.what(), advice_);
  }
}

std::string Template::render(const Context& context, Work& work) const {
  Evaluator evaluator(context, work, strict_);
  try {
    return evaluator.run(body_);
  } catch (const TemplateError& error) {
    throw Error("{} line {}: {}; {}", where_, evaluator.line(), replace_invalid_utf8(error.what()), advice_);
  } catch (const TemplateRefusal& refusal) {
    throw Error("{} line {}: the chat template refuses these messages: {}", where_, evaluator.line(),
                replace_invalid_utf8(refusal.what()).substr(0, 1000));
  }
}

}  // namespace sinkscope::jinja
