// The syntax tree of a template.
#pragma once

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// A program that cannot be parsed, or a statement that is not supported.
class SyntaxError : public std::runtime_error {
 public:
  SyntaxError(int line, const std::string& what) : std::runtime_error(what), line_(line) {}
  int line() const { return line_; }

 private:
  int line_;
};

struct Expression;
using ExpressionPointer = std::unique_ptr<const Expression>;
using Expressions = std::vector<ExpressionPointer>;

/// (1, x, key=2)
struct CallArguments {
  Expressions positional;
  std::vector<std::pair<std::string, ExpressionPointer>> named;
};

struct Constant {
  Value value;
};
struct Name {
  std::string name;
};
struct ListLiteral {
  Expressions items;
  ListKind kind;
};
struct DictLiteral {
  std::vector<std::pair<ExpressionPointer, ExpressionPointer>> entries;
};
struct Not {
  ExpressionPointer operand;
};
struct Sign {
  bool is_negative;
  ExpressionPointer operand;
};
enum class Arithmetic { add, subtract, multiply, divide, floor_divide, modulo, power };
struct Binary {
  Arithmetic operation;
  ExpressionPointer left, right;
};
struct Logical {
  bool is_and;
  ExpressionPointer left, right;
};
enum class Comparison { equal, unequal, less, less_equal, greater, greater_equal, in, not_in };
/// a < b <= c
struct Compare {
  ExpressionPointer first;
  std::vector<std::pair<Comparison, ExpressionPointer>> rest;
};
/// a ~ b ~ c
struct Concatenate {
  Expressions parts;
};
/// then if condition else otherwise; otherwise may be null.
struct Conditional {
  ExpressionPointer condition, then, otherwise;
};
struct Member {
  ExpressionPointer object;
  std::string name;
};
struct Subscript {
  ExpressionPointer object, index;
};
/// Bounds and step may be null.
struct Slice {
  ExpressionPointer object, begin, end, step;
};
struct Call {
  ExpressionPointer callee;
  CallArguments arguments;
};
/// A filter or a test, by name.
struct Application {
  int line;
  std::string name;
  CallArguments arguments;
};
struct Filter {
  ExpressionPointer input;
  Application filter;
};
struct Test {
  ExpressionPointer input;
  Application test;
};

struct Expression {
  int line = 1;
  int depth = 1;  // 1 + that of the deepest operand
  std::variant<Constant, Name, ListLiteral, DictLiteral, Not, Sign, Binary, Logical, Compare, Concatenate,
               Conditional, Member, Subscript, Slice, Call, Filter, Test>
      node;
};

struct Statement;
using Block = std::vector<Statement>;

/// What is assigned to: a name, names to unpack into, or an attribute of a namespace.
struct Target {
  std::vector<std::string> names;
  bool unpacks = false;
  std::string attribute;  // of the namespace names[0]; empty: none
};

struct Data {
  std::string text;
};
struct Output {
  ExpressionPointer value;
};
struct If {
  std::vector<std::pair<ExpressionPointer, Block>> branches;
  Block otherwise;
};
struct For {
  Target target;
  ExpressionPointer elements, condition;  // condition may be null
  Block body, otherwise;
};
struct Set {
  Target target;
  ExpressionPointer value;
};
struct SetBlock {
  Target target;
  std::vector<Application> filters;
  Block body;
};
struct FilterBlock {
  std::vector<Application> filters;
  Block body;
};
/// {% with a = 1 %} and {% generation %}: names of its own.
struct Scoped {
  std::vector<std::pair<std::string, ExpressionPointer>> names;
  Block body;
};
struct Macro {
  std::string name;
  std::vector<std::pair<std::string, ExpressionPointer>> parameters;  // with defaults or null
  Block body;
};
struct Break {};
struct Continue {};

struct Statement {
  int line = 1;
  std::variant<Data, Output, If, For, Set, SetBlock, FilterBlock, Scoped, Macro, Break, Continue> node;
};

}  // namespace sinkscope::jinja
