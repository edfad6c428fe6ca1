#include "text/jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>

#include "text/jinja/lexer.h"

namespace sinkscope::jinja {
namespace {

using Names = std::initializer_list<std::string_view>;

std::string describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::data:
      return "text";
    case TokenKind::output_begin:
      return "{{";
    case TokenKind::output_end:
      return "}}";
    case TokenKind::block_begin:
      return "{%";
    case TokenKind::block_end:
      return "%}";
    case TokenKind::end:
      return "the end of the template";
    case TokenKind::text:
      return "a string";
    default:
      return "\"" + token.text.substr(0, 60) + "\"";
  }
}

class Parser {
 public:
  explicit Parser(std::vector<Token> tokens) : tokens_(std::move(tokens)) {}

  Block parse_program() {
    Block body = parse_block({}, 1);
    if (token().kind != TokenKind::end) fail("{% " + token().text.substr(0, 60) + " %} closes nothing");
    return body;
  }

 private:
  const Token& token(std::size_t ahead = 0) const {
    return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
  }
  void advance() { position_ = std::min(position_ + 1, tokens_.size() - 1); }

  [[noreturn]] void fail(const std::string& what) const { throw SyntaxError(token().line, what); }

  bool at_symbol(std::string_view symbol, std::size_t ahead = 0) const {
    return token(ahead).kind == TokenKind::symbol && token(ahead).text == symbol;
  }
  bool at_name(std::string_view name, std::size_t ahead = 0) const {
    return token(ahead).kind == TokenKind::name && token(ahead).text == name;
  }
  bool at_any_name(const Names& names) const {
    return std::any_of(names.begin(), names.end(), [&](std::string_view name) { return at_name(name); });
  }
  bool skip_symbol(std::string_view symbol) {
    const bool found = at_symbol(symbol);
    if (found) advance();
    return found;
  }
  bool skip_name(std::string_view name) {
    const bool found = at_name(name);
    if (found) advance();
    return found;
  }
  void expect_symbol(std::string_view symbol) {
    if (!skip_symbol(symbol)) fail(fmt::format("\"{}\" is expected, not {}", symbol, describe(token())));
  }
  void expect_name(std::string_view name) {
    if (!skip_name(name)) fail(fmt::format("\"{}\" is expected, not {}", name, describe(token())));
  }
  void expect(TokenKind kind, std::string_view what) {
    if (token().kind != kind) fail(fmt::format("{} is expected, not {}", what, describe(token())));
    advance();
  }
  std::string take_name() {
    if (token().kind != TokenKind::name) fail("a name is expected, not " + describe(token()));
    std::string name = token().text;
    advance();
    return name;
  }

  // Counts the nesting of what is being parsed, against the machine's stack.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) {
      if (++parser_.nesting_ > max_syntax_depth) {
        --parser_.nesting_;
        parser_.fail(fmt::format("the template nests more than {} deep", max_syntax_depth));
      }
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --parser_.nesting_; }

   private:
    Parser& parser_;
  };

  // The finished node above operands of this depth. A long chain `a + b + c` nests to the left, so the depth
  // of the tree is counted beside the parser's own.
  template <typename Node>
  ExpressionPointer make(int line, int deepest, Node node) const {
    if (deepest >= max_syntax_depth)
      fail(fmt::format("an expression nests more than {} deep", max_syntax_depth));
    auto expression = std::make_unique<Expression>();
    expression->line = line;
    expression->depth = deepest + 1;
    expression->node = std::move(node);
    return expression;
  }
  static int depth_of(const ExpressionPointer& expression) { return expression ? expression->depth : 0; }
  static int deepest_of(const Expressions& expressions) {
    int deepest = 0;
    for (const ExpressionPointer& expression : expressions) deepest = std::max(deepest, expression->depth);
    return deepest;
  }
  static int deepest_of(const CallArguments& arguments) {
    int deepest = deepest_of(arguments.positional);
    for (const auto& [name, value] : arguments.named) deepest = std::max(deepest, value->depth);
    return deepest;
  }

  // Statements up to a tag that begins with one of `ends`, whose name is then at hand, or to the end. `line`
  // is that of the tag that opened the block.
  Block parse_block(const Names& ends, int line) {
    const Nesting nesting(*this);
    Block body;
    while (token().kind != TokenKind::end) {
      if (token().kind == TokenKind::data) {
        body.push_back({token().line, Data{token().text}});
        advance();
      } else if (token().kind == TokenKind::output_begin) {
        advance();
        const int output_line = token().line;
        body.push_back({output_line, Output{parse_tuple()}});
        expect(TokenKind::output_end, "}}");
      } else {
        expect(TokenKind::block_begin, "{%");
        if (at_any_name(ends)) return body;
        if (ends.size() == 0 && is_end(token())) return body;
        body.push_back(parse_statement());
        expect(TokenKind::block_end, "%}");
      }
    }
    if (ends.size() > 0)
      throw SyntaxError(line, fmt::format("a block that begins here has no {{% {} %}}", *(ends.end() - 1)));
    return body;
  }

  static bool is_end(const Token& token) {
    return token.kind == TokenKind::name &&
           (token.text.rfind("end", 0) == 0 || token.text == "else" || token.text == "elif");
  }

  // A block behind the tag at hand, up to and with the name of its closing tag.
  Block parse_body(const Names& ends) {
    const int line = token().line;
    expect(TokenKind::block_end, "%}");
    return parse_block(ends, line);
  }

  Statement parse_statement() {
    const int line = token().line;
    const std::string name = take_name();
    if (name == "if") return {line, parse_if()};
    if (name == "for") return {line, parse_for()};
    if (name == "set") return parse_set(line);
    if (name == "macro") return {line, parse_macro()};
    if (name == "filter") return {line, parse_filter_block()};
    if (name == "with") return {line, parse_with()};
    if (name == "generation") return {line, parse_generation()};
    if (name == "break" || name == "continue") {
      if (loops_ == 0) throw SyntaxError(line, "{% " + name + " %} stands in no for");
      if (name == "break") return {line, Break{}};
      return {line, Continue{}};
    }
    if (name.rfind("end", 0) == 0 || name == "else" || name == "elif")
      throw SyntaxError(line, "{% " + name.substr(0, 60) + " %} does not close the block it stands in");
    throw SyntaxError(line, "the statement {% " + name.substr(0, 60) + " %} is not supported");
  }

  If parse_if() {
    If result;
    while (true) {
      ExpressionPointer condition = parse_tuple(/*with_conditional=*/false);
      result.branches.emplace_back(std::move(condition), parse_body({"elif", "else", "endif"}));
      if (skip_name("elif")) continue;
      if (skip_name("else")) result.otherwise = parse_body({"endif"});
      expect_name("endif");
      return result;
    }
  }

  For parse_for() {
    For result;
    result.target = parse_target(/*with_attribute=*/false);
    expect_name("in");
    result.elements = parse_tuple(/*with_conditional=*/false, "recursive");
    if (skip_name("if")) result.condition = parse_expression();
    if (at_name("recursive")) fail("{% for ... recursive %} is not supported");
    ++loops_;
    result.body = parse_body({"else", "endfor"});
    --loops_;
    if (skip_name("else")) result.otherwise = parse_body({"endfor"});
    expect_name("endfor");
    return result;
  }

  Statement parse_set(int line) {
    Target target = parse_target(/*with_attribute=*/true);
    if (skip_symbol("=")) return {line, Set{std::move(target), parse_tuple()}};
    std::vector<Application> filters;
    while (at_symbol("|")) filters.push_back(parse_filter_application());
    Block body = parse_body({"endset"});
    expect_name("endset");
    return {line, SetBlock{std::move(target), std::move(filters), std::move(body)}};
  }

  // A macro sees the names outside of all blocks: those defined in a for would have to outlive it.
  Macro parse_macro() {
    if (loops_ > 0 || scopes_ > 0) fail("a macro inside of a for or another block is not supported");
    Macro macro;
    macro.name = take_name();
    expect_symbol("(");
    while (!at_symbol(")")) {
      if (!macro.parameters.empty()) expect_symbol(",");
      std::string parameter = take_target_name();
      ExpressionPointer fallback;
      if (skip_symbol("="))
        fallback = parse_expression();
      else if (!macro.parameters.empty() && macro.parameters.back().second)
        fail("a parameter without a default follows one with a default");
      macro.parameters.emplace_back(std::move(parameter), std::move(fallback));
    }
    expect_symbol(")");
    ++scopes_;
    macro.body = parse_body({"endmacro"});
    --scopes_;
    expect_name("endmacro");
    if (at_name(macro.name)) advance();
    return macro;
  }

  FilterBlock parse_filter_block() {
    FilterBlock result;
    result.filters.push_back(parse_filter_name());
    while (at_symbol("|")) result.filters.push_back(parse_filter_application());
    ++scopes_;
    result.body = parse_body({"endfilter"});
    --scopes_;
    expect_name("endfilter");
    return result;
  }

  Scoped parse_with() {
    Scoped result;
    while (token().kind != TokenKind::block_end) {
      if (!result.names.empty()) expect_symbol(",");
      std::string name = take_target_name();
      expect_symbol("=");
      result.names.emplace_back(std::move(name), parse_expression());
    }
    ++scopes_;
    result.body = parse_body({"endwith"});
    --scopes_;
    expect_name("endwith");
    return result;
  }

  // transformers marks what the assistant said by this tag; it does not change the text.
  Scoped parse_generation() {
    ++scopes_;
    Scoped result{{}, parse_body({"endgeneration"})};
    --scopes_;
    expect_name("endgeneration");
    return result;
  }

  std::string take_target_name() {
    std::string name = take_name();
    for (const std::string_view reserved : {"loop", "true", "false", "none", "True", "False", "None"})
      if (name == reserved) fail(fmt::format("{} cannot be assigned to", name));
    return name;
  }

  // name, ns.attribute, or names with commas between them, in parentheses or not.
  Target parse_target(bool with_attribute) {
    Target target;
    const bool in_parentheses = skip_symbol("(");
    target.names.push_back(take_target_name());
    if (with_attribute && skip_symbol(".")) target.attribute = take_name();
    if (!target.attribute.empty() && at_symbol(","))
      fail("an attribute of a namespace among several targets is not supported");
    while (skip_symbol(",")) {
      target.unpacks = true;
      if (token().kind != TokenKind::name || at_name("in")) break;  // a last comma
      target.names.push_back(take_target_name());
    }
    if (in_parentheses) expect_symbol(")");
    return target;
  }

  bool at_tuple_end(std::string_view end_name) const {
    return token().kind == TokenKind::output_end || token().kind == TokenKind::block_end || at_symbol(")") ||
           (!end_name.empty() && at_name(end_name));
  }

  // An expression, or several with commas between them, which are a tuple.
  ExpressionPointer parse_tuple(bool with_conditional = true, std::string_view end_name = "",
                                bool in_parentheses = false) {
    const int line = token().line;
    Expressions items;
    bool is_tuple = false;
    while (true) {
      if (!items.empty()) expect_symbol(",");
      if (at_tuple_end(end_name)) break;
      items.push_back(parse_expression(with_conditional));
      if (!at_symbol(",")) break;
      is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return std::move(items.front());
    if (items.empty() && !in_parentheses) fail("an expression is expected, not " + describe(token()));
    const int deepest = deepest_of(items);
    return make(line, deepest, ListLiteral{std::move(items), ListKind::tuple});
  }

  ExpressionPointer parse_expression(bool with_conditional = true) {
    const Nesting nesting(*this);
    ExpressionPointer left = parse_or();
    while (with_conditional && at_name("if")) {
      const int line = token().line;
      advance();
      ExpressionPointer condition = parse_or();
      ExpressionPointer otherwise = skip_name("else") ? parse_expression() : nullptr;
      const int deepest = std::max({depth_of(left), depth_of(condition), depth_of(otherwise)});
      left = make(line, deepest, Conditional{std::move(condition), std::move(left), std::move(otherwise)});
    }
    return left;
  }

  ExpressionPointer parse_or() {
    ExpressionPointer left = parse_and();
    while (at_name("or")) {
      const int line = token().line;
      advance();
      ExpressionPointer right = parse_and();
      const int deepest = std::max(depth_of(left), depth_of(right));
      left = make(line, deepest, Logical{false, std::move(left), std::move(right)});
    }
    return left;
  }

  ExpressionPointer parse_and() {
    ExpressionPointer left = parse_not();
    while (at_name("and")) {
      const int line = token().line;
      advance();
      ExpressionPointer right = parse_not();
      const int deepest = std::max(depth_of(left), depth_of(right));
      left = make(line, deepest, Logical{true, std::move(left), std::move(right)});
    }
    return left;
  }

  ExpressionPointer parse_not() {
    if (!at_name("not")) return parse_compare();
    const Nesting nesting(*this);
    const int line = token().line;
    advance();
    ExpressionPointer operand = parse_not();
    const int deepest = depth_of(operand);
    return make(line, deepest, Not{std::move(operand)});
  }

  std::optional<Comparison> take_comparison() {
    constexpr std::pair<std::string_view, Comparison> symbols[] = {
        {"==", Comparison::equal},      {"!=", Comparison::unequal}, {"<", Comparison::less},
        {"<=", Comparison::less_equal}, {">", Comparison::greater},  {">=", Comparison::greater_equal}};
    for (const auto& [symbol, comparison] : symbols)
      if (skip_symbol(symbol)) return comparison;
    if (skip_name("in")) return Comparison::in;
    if (!at_name("not") || !at_name("in", 1)) return std::nullopt;
    advance();
    advance();
    return Comparison::not_in;
  }

  ExpressionPointer parse_compare() {
    const int line = token().line;
    ExpressionPointer first = parse_sum();
    Compare compare;
    int deepest = depth_of(first);
    while (const auto comparison = take_comparison()) {
      compare.rest.emplace_back(*comparison, parse_sum());
      deepest = std::max(deepest, depth_of(compare.rest.back().second));
    }
    if (compare.rest.empty()) return first;
    compare.first = std::move(first);
    return make(line, deepest, std::move(compare));
  }

  ExpressionPointer make_binary(int line, Arithmetic operation, ExpressionPointer left,
                                ExpressionPointer right) {
    const int deepest = std::max(depth_of(left), depth_of(right));
    return make(line, deepest, Binary{operation, std::move(left), std::move(right)});
  }

  ExpressionPointer parse_sum() {
    ExpressionPointer left = parse_concatenation();
    while (at_symbol("+") || at_symbol("-")) {
      const int line = token().line;
      const Arithmetic operation = at_symbol("+") ? Arithmetic::add : Arithmetic::subtract;
      advance();
      left = make_binary(line, operation, std::move(left), parse_concatenation());
    }
    return left;
  }

  ExpressionPointer parse_concatenation() {
    const int line = token().line;
    Expressions parts;
    parts.push_back(parse_product());
    while (skip_symbol("~")) parts.push_back(parse_product());
    if (parts.size() == 1) return std::move(parts.front());
    const int deepest = deepest_of(parts);
    return make(line, deepest, Concatenate{std::move(parts)});
  }

  ExpressionPointer parse_product() {
    constexpr std::pair<std::string_view, Arithmetic> symbols[] = {{"*", Arithmetic::multiply},
                                                                   {"/", Arithmetic::divide},
                                                                   {"//", Arithmetic::floor_divide},
                                                                   {"%", Arithmetic::modulo}};
    ExpressionPointer left = parse_power();
    while (true) {
      const auto* found = std::find_if(std::begin(symbols), std::end(symbols),
                                       [&](const auto& entry) { return at_symbol(entry.first); });
      if (found == std::end(symbols)) return left;
      const int line = token().line;
      advance();
      left = make_binary(line, found->second, std::move(left), parse_power());
    }
  }

  // Jinja's ** groups from the left, unlike Python's.
  ExpressionPointer parse_power() {
    ExpressionPointer left = parse_unary();
    while (at_symbol("**")) {
      const int line = token().line;
      advance();
      left = make_binary(line, Arithmetic::power, std::move(left), parse_unary());
    }
    return left;
  }

  ExpressionPointer parse_unary(bool with_filters = true) {
    const Nesting nesting(*this);
    ExpressionPointer result;
    if (at_symbol("-") || at_symbol("+")) {
      const int line = token().line;
      const bool is_negative = at_symbol("-");
      advance();
      ExpressionPointer operand = parse_unary(/*with_filters=*/false);
      const int deepest = depth_of(operand);
      result = make(line, deepest, Sign{is_negative, std::move(operand)});
    } else {
      result = parse_primary();
    }
    result = parse_postfix(std::move(result));
    return with_filters ? parse_filters(std::move(result)) : std::move(result);
  }

  ExpressionPointer parse_primary() {
    const int line = token().line;
    const std::string text = token().text;
    switch (token().kind) {
      case TokenKind::name:
        advance();
        return parse_named(line, text);
      case TokenKind::text: {
        std::string whole;
        for (; token().kind == TokenKind::text; advance()) whole.append(token().text);
        return make(line, 0, Constant{std::make_shared<const std::string>(std::move(whole))});
      }
      case TokenKind::integer:
      case TokenKind::real:
        return make(line, 0, Constant{parse_number()});
      default:
        break;
    }
    if (skip_symbol("(")) {
      ExpressionPointer inside = parse_tuple(true, "", /*in_parentheses=*/true);
      expect_symbol(")");
      return inside;
    }
    if (skip_symbol("[")) return parse_list(line);
    if (skip_symbol("{")) return parse_dict(line);
    fail("an expression is expected, not " + describe(token()));
  }

  ExpressionPointer parse_named(int line, const std::string& name) {
    if (name == "true" || name == "True") return make(line, 0, Constant{true});
    if (name == "false" || name == "False") return make(line, 0, Constant{false});
    if (name == "none" || name == "None") return make(line, 0, Constant{None{}});
    return make(line, 0, Name{name});
  }

  Value parse_number() {
    const Token& number = token();
    const char* const end = number.text.data() + number.text.size();
    std::int64_t integer = 0;
    double real = 0;
    const auto result = number.kind == TokenKind::real ? std::from_chars(number.text.data(), end, real)
                                                       : std::from_chars(number.text.data(), end, integer);
    if (result.ec != std::errc() || result.ptr != end)
      fail(fmt::format("the number {} is too large", number.text.substr(0, 40)));
    const bool is_real = number.kind == TokenKind::real;
    advance();
    return is_real ? Value(real) : Value(integer);
  }

  ExpressionPointer parse_list(int line) {
    Expressions items;
    while (!at_symbol("]")) {
      if (!items.empty()) expect_symbol(",");
      if (at_symbol("]")) break;
      items.push_back(parse_expression());
    }
    expect_symbol("]");
    const int deepest = deepest_of(items);
    return make(line, deepest, ListLiteral{std::move(items), ListKind::list});
  }

  ExpressionPointer parse_dict(int line) {
    DictLiteral dict;
    int deepest = 0;
    while (!at_symbol("}")) {
      if (!dict.entries.empty()) expect_symbol(",");
      if (at_symbol("}")) break;
      ExpressionPointer key = parse_expression();
      expect_symbol(":");
      dict.entries.emplace_back(std::move(key), parse_expression());
      deepest =
          std::max({deepest, depth_of(dict.entries.back().first), depth_of(dict.entries.back().second)});
    }
    expect_symbol("}");
    return make(line, deepest, std::move(dict));
  }

  ExpressionPointer parse_postfix(ExpressionPointer object) {
    while (true) {
      if (at_symbol("."))
        object = parse_member(std::move(object));
      else if (at_symbol("["))
        object = parse_subscript(std::move(object));
      else if (at_symbol("("))
        object = parse_call(std::move(object));
      else
        return object;
    }
  }

  ExpressionPointer parse_member(ExpressionPointer object) {
    const int line = token().line;
    const int deepest = depth_of(object);
    expect_symbol(".");
    if (token().kind == TokenKind::integer) {
      ExpressionPointer index = make(line, 0, Constant{parse_number()});
      return make(line, deepest, Subscript{std::move(object), std::move(index)});
    }
    return make(line, deepest, Member{std::move(object), take_name()});
  }

  ExpressionPointer parse_subscript(ExpressionPointer object) {
    const int line = token().line;
    expect_symbol("[");
    ExpressionPointer begin = at_symbol(":") ? nullptr : parse_expression();
    if (!at_symbol(":")) {
      expect_symbol("]");
      const int deepest = std::max(depth_of(object), depth_of(begin));
      return make(line, deepest, Subscript{std::move(object), std::move(begin)});
    }
    expect_symbol(":");
    ExpressionPointer end = at_symbol(":") || at_symbol("]") ? nullptr : parse_expression();
    ExpressionPointer step = skip_symbol(":") && !at_symbol("]") ? parse_expression() : nullptr;
    expect_symbol("]");
    const int deepest = std::max({depth_of(object), depth_of(begin), depth_of(end), depth_of(step)});
    return make(line, deepest, Slice{std::move(object), std::move(begin), std::move(end), std::move(step)});
  }

  CallArguments parse_arguments() {
    CallArguments arguments;
    expect_symbol("(");
    bool first = true;
    while (!at_symbol(")")) {
      if (!first) expect_symbol(",");
      if (at_symbol(")")) break;
      first = false;
      if (at_symbol("*") || at_symbol("**")) fail("* and ** in a call are not supported");
      if (token().kind == TokenKind::name && at_symbol("=", 1)) {
        std::string name = take_name();
        expect_symbol("=");
        arguments.named.emplace_back(std::move(name), parse_expression());
      } else {
        if (!arguments.named.empty()) fail("an argument without a name follows one with a name");
        arguments.positional.push_back(parse_expression());
      }
    }
    expect_symbol(")");
    return arguments;
  }

  ExpressionPointer parse_call(ExpressionPointer callee) {
    const int line = token().line;
    CallArguments arguments = parse_arguments();
    const int deepest = std::max(depth_of(callee), deepest_of(arguments));
    return make(line, deepest, Call{std::move(callee), std::move(arguments)});
  }

  ExpressionPointer parse_filters(ExpressionPointer input) {
    while (true) {
      if (at_symbol("|")) {
        const int line = token().line;
        Application filter = parse_filter_application();
        const int deepest = std::max(depth_of(input), deepest_of(filter.arguments));
        input = make(line, deepest, Filter{std::move(input), std::move(filter)});
      } else if (at_name("is")) {
        input = parse_test(std::move(input));
      } else if (at_symbol("(")) {
        input = parse_call(std::move(input));
      } else {
        return input;
      }
    }
  }

  Application parse_filter_application() {
    expect_symbol("|");
    return parse_filter_name();
  }

  Application parse_filter_name() {
    Application filter{token().line, take_name(), {}};
    if (at_symbol("(")) filter.arguments = parse_arguments();
    return filter;
  }

  // `is name`, `is not name`, `is name(x)`, `is name x`.
  ExpressionPointer parse_test(ExpressionPointer input) {
    const int line = token().line;
    expect_name("is");
    const bool is_negated = skip_name("not");
    Application test{token().line, take_name(), {}};
    if (at_symbol("("))
      test.arguments = parse_arguments();
    else if (begins_test_argument())
      test.arguments.positional.push_back(parse_postfix(parse_primary()));
    const int deepest = std::max(depth_of(input), deepest_of(test.arguments));
    ExpressionPointer result = make(line, deepest, Test{std::move(input), std::move(test)});
    return is_negated ? make(line, deepest + 1, Not{std::move(result)}) : std::move(result);
  }

  bool begins_test_argument() const {
    if (at_name("is")) fail("two tests in a row (`is ... is`) need parentheses");
    switch (token().kind) {
      case TokenKind::name:
        return !at_any_name({"else", "or", "and"});
      case TokenKind::text:
      case TokenKind::integer:
      case TokenKind::real:
        return true;
      default:
        return at_symbol("[") || at_symbol("{");
    }
  }

  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int nesting_ = 0;
  int loops_ = 0;   // fors around the place at hand
  int scopes_ = 0;  // other blocks with names of their own
};

}  // namespace

Block parse(std::string_view program, const Dialect& dialect) {
  return Parser(tokenize(program, dialect)).parse_program();
}

}  // namespace sinkscope::jinja
