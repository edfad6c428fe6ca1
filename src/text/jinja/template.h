// A small and safe evaluator of the part of Jinja2 that chat templates and benchmark tasks use.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/lexer.h"
#include "text/jinja/syntax.h"

namespace sinkscope::jinja {

/// What a template sees: names and their values, and the day that strftime_now tells.
struct Context {
  std::vector<std::pair<std::string, Value>> names;
  std::chrono::year_month_day today{};
};

/// A parsed template. Immutable: it may be rendered from several threads at once.
class Template {
 public:
  /// `where` names it in errors. Throws Error with `where`, the line, what is wrong there and `advice`.
  Template(std::string_view program, std::string where, std::string advice, const Dialect& dialect = {});

  /// The text. Whatever the template does, this ends: with an Error when it needs more time, memory or depth
  /// than the limits in work.h, when it uses what is not supported, and when it calls raise_exception, whose
  /// words the Error repeats. input_bytes: the size of the values in `context`.
  std::string render(const Context& context, Work& work) const;

 private:
  std::string where_, advice_;
  bool strict_;
  Block body_;
};

}  // namespace sinkscope::jinja
