#include "text/jinja/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "text/jinja/filters.h"
#include "text/jinja/globals.h"
#include "text/jinja/members.h"
#include "text/jinja/operators.h"

namespace sinkscope::jinja {
namespace {

template <typename... Handlers>
struct Overload : Handlers... {
  using Handlers::operator()...;
};
template <typename... Handlers>
Overload(Handlers...) -> Overload<Handlers...>;

// Sets a variable for as long as this lives.
template <typename T>
class Replaced {
 public:
  Replaced(T& variable, T value) : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  Replaced(const Replaced&) = delete;
  Replaced& operator=(const Replaced&) = delete;
  ~Replaced() { variable_ = std::move(before_); }

 private:
  T& variable_;
  T before_;
};

void check_depth(int depth) {
  if (depth > max_call_depth)
    throw TemplateError("the template calls itself or nests too deep; it may call itself without end");
}

}  // namespace

Evaluator::Evaluator(const Context& context, Work& work, bool strict)
    : context_(context), work_(work), strict_(strict) {}

std::string Evaluator::run(const Block& body) {
  std::string text;
  out_ = &text;
  (void)run_block(body, root_);
  return text;
}

void Evaluator::print(const std::string& text) {
  work_.charge(text.size());
  out_->append(text);
}

// ---------------------------------------------------------------------------------------------- statements

Evaluator::Flow Evaluator::run_block(const Block& body, Scope& scope) {
  const Replaced deeper(depth_, depth_ + 1);
  check_depth(depth_);
  for (const Statement& statement : body) {
    line_ = statement.line;
    work_.charge(step_cost);
    const Flow flow = std::visit([&](const auto& node) { return run(node, scope); }, statement.node);
    if (flow != Flow::normal) return flow;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const Data& node, Scope& /*scope*/) {
  print(node.text);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const Output& node, Scope& scope) {
  const Value value = evaluate(*node.value, scope);
  const Undefined* const undefined = get<Undefined>(value);
  if (strict_ && undefined != nullptr) throw_undefined(*undefined);
  print(to_text(work_, value));
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const Set& node, Scope& scope) {
  assign(node.target, evaluate(*node.value, scope), scope);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const Macro& node, Scope& scope) {
  scope.names[node.name] = Function(&node);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const If& node, Scope& scope) {
  for (const auto& [condition, body] : node.branches)
    if (is_true(evaluate(*condition, scope))) return run_block(body, scope);
  return run_block(node.otherwise, scope);
}

// The elements a for goes through: those that its condition lets pass.
std::vector<Value> Evaluator::chosen_elements(const For& node, Scope& scope) {
  const auto elements = elements_of(work_, evaluate(*node.elements, scope));
  std::vector<Value> chosen;
  for (const Value& element : elements->items) {
    work_.charge(element_cost);
    Scope inner{&scope, {}};
    if (node.condition) assign(node.target, element, inner);
    if (!node.condition || is_true(evaluate(*node.condition, inner))) chosen.push_back(element);
  }
  return chosen;
}

Evaluator::Flow Evaluator::run(const For& node, Scope& scope) {
  const Value chosen = make_list(work_, chosen_elements(node, scope));
  const auto& elements = std::get<std::shared_ptr<const List>>(chosen);
  if (elements->items.empty()) return run_block(node.otherwise, scope);
  for (std::size_t i = 0; i < elements->items.size(); ++i) {
    // Every turn has names of its own.
    Scope inner{&scope, {}};
    work_.charge(element_cost);
    inner.names["loop"] = std::make_shared<const Loop>(Loop{elements, static_cast<std::int64_t>(i)});
    assign(node.target, elements->items[i], inner);
    if (run_block(node.body, inner) == Flow::break_loop) break;
  }
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const Scoped& node, Scope& scope) {
  Scope inner{&scope, {}};
  // Values are those outside: `with a = b, b = a` exchanges.
  for (const auto& [name, value] : node.names) inner.names[name] = evaluate(*value, scope);
  return run_block(node.body, inner);
}

Evaluator::Flow Evaluator::capture(const Block& body, const Scope& outer, std::string& text) {
  const Replaced redirected(out_, &text);
  Scope inner{&outer, {}};
  return run_block(body, inner);
}

Evaluator::Flow Evaluator::run(const SetBlock& node, Scope& scope) {
  std::string text;
  const Flow flow = capture(node.body, scope, text);
  if (flow != Flow::normal) return flow;
  Value value = make_text(work_, std::move(text));
  for (const Application& filter : node.filters) value = apply(filter, value, scope);
  assign(node.target, value, scope);
  return Flow::normal;
}

Evaluator::Flow Evaluator::run(const FilterBlock& node, Scope& scope) {
  std::string text;
  const Flow flow = capture(node.body, scope, text);
  if (flow != Flow::normal) return flow;
  Value value = make_text(work_, std::move(text));
  for (const Application& filter : node.filters) value = apply(filter, value, scope);
  print(to_text(work_, value));
  return Flow::normal;
}

void Evaluator::assign(const Target& target, const Value& value, Scope& scope) {
  if (!target.attribute.empty()) {
    const Value space = look_up(target.names[0], scope);
    Namespace* const* found = get<Namespace*>(space);
    if (found == nullptr)
      throw TemplateError(fmt::format("{}.{} is assigned to, but {} is no namespace", target.names[0],
                                      target.attribute, target.names[0]));
    work_.charge(target.attribute.size() + element_cost);
    (*found)->attributes[target.attribute] = value;
    return;
  }
  work_.charge(element_cost);
  if (!target.unpacks) {
    scope.names[target.names[0]] = value;
    return;
  }
  const auto elements = elements_of(work_, value);
  if (elements->items.size() != target.names.size())
    throw TemplateError(
        fmt::format("{} values are unpacked into {} names", elements->items.size(), target.names.size()));
  for (std::size_t i = 0; i < target.names.size(); ++i) scope.names[target.names[i]] = elements->items[i];
}

// --------------------------------------------------------------------------------------------- expressions

Value Evaluator::evaluate(const Expression& expression, const Scope& scope) {
  const Replaced deeper(depth_, depth_ + 1);
  check_depth(depth_);
  work_.charge(step_cost);
  line_ = expression.line;
  return evaluate_node(expression, scope);
}

Value Evaluator::evaluate_node(const Expression& expression, const Scope& scope) {
  const int line = expression.line;
  // What follows the operands belongs to this expression's own line.
  const auto operand = [&](const ExpressionPointer& pointer) {
    Value value = evaluate(*pointer, scope);
    line_ = line;
    return value;
  };
  return std::visit(
      Overload{
          [&](const Constant& node) { return node.value; },
          [&](const Name& node) { return look_up(node.name, scope); },
          [&](const ListLiteral& node) { return evaluate_list(node, scope); },
          [&](const DictLiteral& node) { return evaluate_dict(node, scope); },
          [&](const Not& node) { return Value(!is_true(operand(node.operand))); },
          [&](const Sign& node) {
            const Value value = operand(node.operand);
            return node.is_negative ? negate(value) : negate(negate(value));
          },
          [&](const Binary& node) {
            const Value left = operand(node.left);
            return compute(work_, node.operation, left, operand(node.right));
          },
          [&](const Logical& node) { return evaluate_logical(node, scope); },
          [&](const Compare& node) { return evaluate_compare(node, scope); },
          [&](const Concatenate& node) { return evaluate_concatenate(node, scope); },
          [&](const Conditional& node) { return evaluate_conditional(node, line, scope); },
          [&](const Member& node) { return get_member(work_, operand(node.object), node.name); },
          [&](const Subscript& node) {
            const Value object = operand(node.object);
            return get_element(work_, object, operand(node.index));
          },
          [&](const Slice& node) { return evaluate_slice(node, line, scope); },
          [&](const Call& node) { return evaluate_call(node, line, scope); },
          [&](const Filter& node) { return apply(node.filter, operand(node.input), scope); },
          [&](const Test& node) {
            const Value input = operand(node.input);
            const Arguments arguments = evaluate_arguments(node.test.arguments, scope);
            line_ = line;
            return Value(passes_test(work_, node.test.name, input, arguments));
          },
      },
      expression.node);
}

Value Evaluator::look_up(const std::string& name, const Scope& scope) const {
  for (const Scope* at = &scope; at != nullptr; at = at->outer) {
    const auto found = at->names.find(name);
    if (found != at->names.end()) return found->second;
  }
  for (const auto& [given, value] : context_.names)
    if (given == name) return value;
  if (const auto function = find_global(name)) return Function(*function);
  return make_undefined(fmt::format("\"{}\" is undefined", name.substr(0, 100)));
}

Value Evaluator::evaluate_list(const ListLiteral& node, const Scope& scope) {
  std::vector<Value> items;
  items.reserve(node.items.size());
  for (const ExpressionPointer& item : node.items) items.push_back(evaluate(*item, scope));
  return make_list(work_, std::move(items), node.kind);
}

Value Evaluator::evaluate_dict(const DictLiteral& node, const Scope& scope) {
  std::vector<std::pair<std::string, Value>> entries;
  for (const auto& [key_node, value_node] : node.entries) {
    const Value key = evaluate(*key_node, scope);
    const std::string* text = text_of(key);
    if (text == nullptr)
      throw TemplateError(fmt::format("a dict with {} for a key is not supported", type_name(key)));
    work_.charge(text->size() + entries.size() * step_cost);
    Value value = evaluate(*value_node, scope);
    const auto same =
        std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.first == *text; });
    if (same == entries.end())
      entries.emplace_back(*text, std::move(value));
    else
      same->second = std::move(value);
  }
  return make_dict(work_, std::move(entries));
}

// `and` and `or` give one of their operands, as Python's do.
Value Evaluator::evaluate_logical(const Logical& node, const Scope& scope) {
  Value left = evaluate(*node.left, scope);
  return is_true(left) == node.is_and ? evaluate(*node.right, scope) : left;
}

Value Evaluator::evaluate_compare(const Compare& node, const Scope& scope) {
  Value left = evaluate(*node.first, scope);
  for (const auto& [comparison, operand] : node.rest) {
    Value right = evaluate(*operand, scope);
    if (!compare(work_, comparison, left, right)) return false;
    left = std::move(right);
  }
  return true;
}

Value Evaluator::evaluate_concatenate(const Concatenate& node, const Scope& scope) {
  std::string text;
  for (const ExpressionPointer& part : node.parts) text.append(to_text(work_, evaluate(*part, scope)));
  return make_text(work_, std::move(text));
}

Value Evaluator::evaluate_conditional(const Conditional& node, int line, const Scope& scope) {
  if (is_true(evaluate(*node.condition, scope))) return evaluate(*node.then, scope);
  if (node.otherwise) return evaluate(*node.otherwise, scope);
  return make_undefined(fmt::format("the `if` without `else` of line {} was false", line));
}

Value Evaluator::evaluate_slice(const Slice& node, int line, const Scope& scope) {
  const auto bound = [&](const ExpressionPointer& pointer) {
    return pointer ? evaluate(*pointer, scope) : Value(None{});
  };
  const Value object = evaluate(*node.object, scope);
  const Value begin = bound(node.begin), end = bound(node.end), step = bound(node.step);
  line_ = line;
  return get_slice(work_, object, begin, end, step);
}

Arguments Evaluator::evaluate_arguments(const CallArguments& arguments, const Scope& scope) {
  Arguments result;
  for (const ExpressionPointer& argument : arguments.positional)
    result.positional.push_back(evaluate(*argument, scope));
  for (const auto& [name, argument] : arguments.named)
    result.named.emplace_back(name, evaluate(*argument, scope));
  work_.charge((result.positional.size() + result.named.size()) * element_cost);
  return result;
}

Value Evaluator::apply(const Application& filter, const Value& input, const Scope& scope) {
  const Arguments arguments = evaluate_arguments(filter.arguments, scope);
  line_ = filter.line;
  return apply_filter(work_, filter.name, input, arguments);
}

Value Evaluator::evaluate_call(const Call& node, int line, const Scope& scope) {
  const Member* member = std::get_if<Member>(&node.callee->node);
  if (member == nullptr) {
    const Value callee = evaluate(*node.callee, scope);
    const Arguments arguments = evaluate_arguments(node.arguments, scope);
    line_ = line;
    return call_function(callee, arguments);
  }
  const Value object = evaluate(*member->object, scope);
  if (const Undefined* undefined = get<Undefined>(object)) throw_undefined(*undefined);
  const Arguments arguments = evaluate_arguments(node.arguments, scope);
  line_ = line;
  if (auto result = call_method(work_, object, member->name, arguments)) return *std::move(result);
  return call_function(get_member(work_, object, member->name), arguments);
}

Value Evaluator::call_function(const Value& callee, const Arguments& arguments) {
  if (const Undefined* undefined = get<Undefined>(callee)) throw_undefined(*undefined);
  const Function* function = get<Function>(callee);
  if (function == nullptr) throw TemplateError(fmt::format("{} cannot be called", type_name(callee)));
  if (const Macro* const* macro = std::get_if<const Macro*>(function)) return call_macro(**macro, arguments);
  const Global global = std::get<Global>(*function);
  if (global == Global::make_namespace) return make_namespace(arguments);
  return call_global(work_, global, arguments, context_.today);
}

Value Evaluator::call_macro(const Macro& macro, const Arguments& arguments) {
  std::vector<std::string_view> names;
  for (const auto& [name, fallback] : macro.parameters) names.emplace_back(name);
  const auto given = bind(arguments, "the macro " + macro.name, names);
  Scope inner{&root_, {}};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto& [name, fallback] = macro.parameters[i];
    if (given[i])
      inner.names[name] = *given[i];
    else if (fallback)
      inner.names[name] = evaluate(*fallback, inner);
    else
      inner.names[name] =
          make_undefined(fmt::format("the argument {} of the macro {} was not given", name, macro.name));
  }
  std::string text;
  const Replaced redirected(out_, &text);
  (void)run_block(macro.body, inner);
  return make_text(work_, std::move(text));
}

Value Evaluator::make_namespace(const Arguments& arguments) {
  work_.charge(16 * element_cost);
  namespaces_.emplace_back();
  Namespace& space = namespaces_.back();
  for (const Value& value : arguments.positional) {
    const Dict* dict = dict_of(value);
    if (dict == nullptr || arguments.positional.size() > 1)
      throw TemplateError("namespace() takes one dict at most, and arguments with names");
    work_.charge(dict->entries.size() * element_cost);
    for (const auto& [name, entry] : dict->entries) space.attributes[name] = entry;
  }
  for (const auto& [name, value] : arguments.named) space.attributes[name] = value;
  return &space;
}

}  // namespace sinkscope::jinja
