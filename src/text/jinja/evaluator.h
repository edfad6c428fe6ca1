// Runs a template's syntax tree.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "text/jinja/arguments.h"
#include "text/jinja/syntax.h"
#include "text/jinja/template.h"

namespace sinkscope::jinja {

/// One rendering. Throws TemplateError and TemplateRefusal; line() is then where.
class Evaluator {
 public:
  Evaluator(const Context& context, Work& work, bool strict);

  std::string run(const Block& body);
  int line() const { return line_; }

 private:
  // Names assigned in one block; those of the blocks around it are seen through `outer`.
  struct Scope {
    const Scope* outer = nullptr;
    std::map<std::string, Value, std::less<>> names;
  };
  enum class Flow { normal, break_loop, continue_loop };

  Flow run_block(const Block& body, Scope& scope);
  Flow run(const Data& node, Scope& scope);
  Flow run(const Output& node, Scope& scope);
  Flow run(const Set& node, Scope& scope);
  Flow run(const Macro& node, Scope& scope);
  static Flow run(const Break& /*node*/, const Scope& /*scope*/) { return Flow::break_loop; }
  static Flow run(const Continue& /*node*/, const Scope& /*scope*/) { return Flow::continue_loop; }
  Flow run(const If& node, Scope& scope);
  Flow run(const For& node, Scope& scope);
  Flow run(const Scoped& node, Scope& scope);
  Flow run(const SetBlock& node, Scope& scope);
  Flow run(const FilterBlock& node, Scope& scope);
  std::vector<Value> chosen_elements(const For& node, Scope& scope);
  // Runs body in a scope of its own; its text goes to `text`.
  Flow capture(const Block& body, const Scope& outer, std::string& text);
  void assign(const Target& target, const Value& value, Scope& scope);
  void print(const std::string& text);

  Value evaluate(const Expression& expression, const Scope& scope);
  Value evaluate_node(const Expression& expression, const Scope& scope);
  Value look_up(const std::string& name, const Scope& scope) const;
  Value evaluate_list(const ListLiteral& node, const Scope& scope);
  Value evaluate_dict(const DictLiteral& node, const Scope& scope);
  Value evaluate_logical(const Logical& node, const Scope& scope);
  Value evaluate_compare(const Compare& node, const Scope& scope);
  Value evaluate_concatenate(const Concatenate& node, const Scope& scope);
  Value evaluate_conditional(const Conditional& node, int line, const Scope& scope);
  Value evaluate_slice(const Slice& node, int line, const Scope& scope);
  Value evaluate_call(const Call& node, int line, const Scope& scope);
  Arguments evaluate_arguments(const CallArguments& arguments, const Scope& scope);
  Value apply(const Application& filter, const Value& input, const Scope& scope);
  Value call_function(const Value& callee, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  Value make_namespace(const Arguments& arguments);

  const Context& context_;
  Work& work_;
  bool strict_;  // printing an undefined value is an error
  Scope root_;
  std::deque<Namespace> namespaces_;  // stay where they are
  std::string* out_ = nullptr;
  int line_ = 1;
  int depth_ = 0;
};

}  // namespace sinkscope::jinja
