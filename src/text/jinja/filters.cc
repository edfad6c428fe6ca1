#include "text/jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "text/jinja/json_text.h"
#include "text/jinja/members.h"
#include "text/jinja/operators.h"
#include "text/jinja/python_text.h"

namespace sinkscope::jinja {
namespace {

// What a filter gets: its input, and its arguments by position, those not given empty.
struct FilterCall {
  Work& work;
  const std::string& name;
  const Value& input;
  std::vector<std::optional<Value>> arguments;

  std::string text() const { return to_text(work, input); }
  Value make(std::string text) const { return make_text(work, std::move(text)); }
  /// As a text, whatever it is: Jinja calls str on it.
  std::string argument_text(std::size_t index, const std::string& fallback) const {
    return arguments[index] ? to_text(work, *arguments[index]) : fallback;
  }
};

using FilterBody = Value (*)(const FilterCall&);
struct FilterEntry {
  std::vector<std::string_view> parameters;
  FilterBody body;
};

Value trim(const FilterCall& call) {
  const std::string text = call.text();
  if (!call.arguments[0] || is_none(*call.arguments[0]))
    return call.make(std::string(strip_space(text, Ends::both)));
  const std::string characters = text_or(call.arguments[0], call.name, "");
  call.work.charge(std::uint64_t{text.size()} * characters.size() / 16);
  return call.make(std::string(strip_characters(text, characters, Ends::both)));
}

Value length(const FilterCall& call) {
  if (const std::string* text = text_of(call.input)) {
    call.work.charge(text->size() / 8);
    return static_cast<std::int64_t>(count_characters(*text));
  }
  const List* list = list_of(call.input);
  if (list != nullptr && list->kind == ListKind::generator)
    throw TemplateError("a filter's sequence has no length; `| list` gives it one");
  if (list != nullptr) return static_cast<std::int64_t>(list->items.size());
  if (const Dict* dict = dict_of(call.input)) return static_cast<std::int64_t>(dict->entries.size());
  if (is_undefined(call.input)) return std::int64_t{0};
  throw TemplateError(fmt::format("{} has no length", type_name(call.input)));
}

template <std::string (*change)(std::string_view)>
Value change_text(const FilterCall& call) {
  return call.make(change(call.text()));
}

Value use_default(const FilterCall& call) {
  const bool is_missing =
      is_undefined(call.input) || (truth_or(call.arguments[1], false) && !is_true(call.input));
  if (!is_missing) return call.input;
  return call.arguments[0] ? *call.arguments[0] : call.make("");
}

Value element_at(const FilterCall& call, bool from_end) {
  const auto elements = elements_of(call.work, call.input);
  if (elements->items.empty()) return make_undefined("an empty sequence has no first and no last element");
  return from_end ? elements->items.back() : elements->items.front();
}
Value first(const FilterCall& call) { return element_at(call, false); }
Value last(const FilterCall& call) { return element_at(call, true); }

// An attribute as filters name it: "a.b.0".
Value attribute_of(Work& work, Value value, const Value& path) {
  if (const auto index = integer_of(path)) return get_element(work, value, *index);
  const std::string* text = text_of(path);
  if (text == nullptr)
    throw TemplateError(fmt::format("an attribute's name is a string, not {}", type_name(path)));
  for (const std::string_view part : split_at(*text, ".", -1)) {
    std::int64_t index = 0;
    const auto number = std::from_chars(part.data(), part.data() + part.size(), index);
    const bool is_index = !part.empty() && part[0] != '-' && number.ec == std::errc() &&
                          number.ptr == part.data() + part.size();
    value = get_element(work, value, is_index ? Value(index) : make_text(work, std::string(part)));
  }
  return value;
}

Value join(const FilterCall& call) {
  const std::string between = call.argument_text(0, "");
  const auto elements = elements_of(call.work, call.input);
  std::string out;
  for (const Value& element : elements->items) {
    call.work.charge(between.size());
    if (&element != elements->items.data()) out.append(between);
    out.append(to_text(call.work,
                       call.arguments[1] ? attribute_of(call.work, element, *call.arguments[1]) : element));
  }
  return call.make(std::move(out));
}

Value to_list(const FilterCall& call) {
  return make_list(call.work, elements_of(call.work, call.input)->items, ListKind::list);
}

Value to_string(const FilterCall& call) { return call.make(call.text()); }

// Autoescaping is off, so nothing has to be marked as safe.
Value safe(const FilterCall& call) { return call.make(call.text()); }

std::string without_underscores(std::string_view text) {
  std::string out(strip_space(text, Ends::both));
  for (std::size_t i = 1; i + 1 < out.size(); ++i)
    if (out[i] == '_' && std::isdigit(static_cast<unsigned char>(out[i - 1])) != 0 &&
        std::isdigit(static_cast<unsigned char>(out[i + 1])) != 0)
      out.erase(i--, 1);
  return out[0] == '+' && out.size() > 1 && out[1] != '-' ? out.substr(1) : out;
}

// Python's float(text).
std::optional<double> parse_real(std::string_view text) {
  if (text.size() > 400) return std::nullopt;
  const std::string digits = without_underscores(text);
  double value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_whole = !digits.empty() && result.ptr == digits.data() + digits.size();
  if (is_whole && result.ec == std::errc::result_out_of_range)
    throw TemplateError("a number is too large or too small for a real number");
  return is_whole && result.ec == std::errc() ? std::optional<double>(value) : std::nullopt;
}

std::optional<std::int64_t> truncate(double real) {
  if (std::isnan(real) || std::isinf(real)) return std::nullopt;
  if (std::abs(real) >= 0x1p63) throw TemplateError("an integer grows beyond 64 bits");
  return static_cast<std::int64_t>(real);
}

// Python's int(text, base), or that of the real number it holds.
std::optional<std::int64_t> parse_integer(std::string_view text, int base) {
  const std::string digits = without_underscores(text.substr(0, 400));
  std::int64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  const bool is_whole = !digits.empty() && text.size() <= 400 && result.ptr == digits.data() + digits.size();
  if (is_whole && result.ec == std::errc::result_out_of_range)
    throw TemplateError("an integer grows beyond 64 bits");
  if (is_whole && result.ec == std::errc()) return value;
  const auto real = parse_real(text);
  return real ? truncate(*real) : std::nullopt;
}

void refuse_undefined(const Value& value) {
  if (const Undefined* undefined = get<Undefined>(value)) throw_undefined(*undefined);
}

Value to_int(const FilterCall& call) {
  refuse_undefined(call.input);
  const Value fallback = call.arguments[0] ? *call.arguments[0] : Value(std::int64_t{0});
  std::optional<std::int64_t> result = integer_of(call.input);
  const std::int64_t base = integer_or(call.arguments[1], call.name, 10);
  if (base < 2 || base > 36) throw TemplateError("the filter int takes a base from 2 to 36");
  if (const std::string* text = text_of(call.input)) result = parse_integer(*text, static_cast<int>(base));
  if (const double* real = get<double>(call.input)) result = truncate(*real);
  return result ? Value(*result) : fallback;
}

Value to_float(const FilterCall& call) {
  refuse_undefined(call.input);
  const Value fallback = call.arguments[0] ? *call.arguments[0] : Value(0.0);
  std::optional<double> result = number_of(call.input);
  if (const std::string* text = text_of(call.input)) result = parse_real(*text);
  return result ? Value(*result) : fallback;
}

Value replace(const FilterCall& call) {
  (void)required(call.arguments[1], call.name);
  const Value text = call.make(call.text());
  Arguments arguments{{call.make(call.argument_text(0, "")), call.make(call.argument_text(1, ""))}, {}};
  if (call.arguments[2] && !is_none(*call.arguments[2])) arguments.positional.push_back(*call.arguments[2]);
  return *call_method(call.work, text, "replace", arguments);
}

Value to_json_filter(const FilterCall& call) {
  JsonStyle style;
  style.ascii_only = truth_or(call.arguments[0], false);
  if (call.arguments[1] && !is_none(*call.arguments[1])) {
    const std::string* text = text_of(*call.arguments[1]);
    const std::int64_t width = text == nullptr ? integer_or(call.arguments[1], call.name, 0) : 0;
    if (width > 100) throw TemplateError("tojson indents by at most 100");
    style.indent = text == nullptr
                       ? std::string(static_cast<std::size_t>(std::max<std::int64_t>(0, width)), ' ')
                       : *text;
    style.item_separator = std::string(",");
  }
  if (call.arguments[2] && !is_none(*call.arguments[2])) {
    const List* separators = list_of(*call.arguments[2]);
    if (separators == nullptr || separators->items.size() != 2)
      throw TemplateError("tojson takes two separators, (\",\", \":\")");
    style.item_separator = text_or(separators->items[0], call.name, "");
    style.key_separator = text_or(separators->items[1], call.name, "");
  }
  style.sort_keys = truth_or(call.arguments[3], false);
  call.work.charge(style.item_separator.size() + style.key_separator.size());
  if (style.item_separator.size() + style.key_separator.size() > 100)
    throw TemplateError("tojson takes separators of a few characters");
  return call.make(to_json(call.work, call.input, style));
}

Value items(const FilterCall& call) {
  if (is_undefined(call.input)) return make_list(call.work, {}, ListKind::generator);
  if (dict_of(call.input) == nullptr)
    throw TemplateError(fmt::format("the filter items takes a dict, not {}", type_name(call.input)));
  return *call_method(call.work, call.input, "items", {});
}

Value indent(const FilterCall& call) {
  std::string by;
  if (call.arguments[0] && text_of(*call.arguments[0]) != nullptr)
    by = *text_of(*call.arguments[0]);
  else
    by.assign(static_cast<std::size_t>(
                  std::clamp<std::int64_t>(integer_or(call.arguments[0], call.name, 4), 0, 1000)),
              ' ');
  const bool indent_first = truth_or(call.arguments[1], false),
             indent_blank = truth_or(call.arguments[2], false);
  refuse_undefined(call.input);
  if (text_of(call.input) == nullptr)
    throw TemplateError(fmt::format("the filter indent takes a string, not {}", type_name(call.input)));
  const std::string text = call.text() + "\n";
  call.work.charge(text.size() * 16);
  std::string out;
  bool is_first = true;
  for (const std::string_view line : split_lines(text)) {
    const bool indents = is_first ? indent_first : indent_blank || !line.empty();
    call.work.charge(by.size() + step_cost);
    out.append(is_first ? "" : "\n").append(indents ? by : "").append(line);
    is_first = false;
  }
  return call.make(std::move(out));
}

Value reverse(const FilterCall& call) {
  if (const std::string* text = text_of(call.input)) {
    call.work.charge(text->size() * 16);
    const auto characters = characters_of(*text);
    std::string out;
    for (auto c = characters.rbegin(); c != characters.rend(); ++c) out.append(*c);
    return call.make(std::move(out));
  }
  std::vector<Value> reversed = elements_of(call.work, call.input)->items;
  std::reverse(reversed.begin(), reversed.end());
  return make_list(call.work, std::move(reversed), ListKind::generator);
}

Value absolute(const FilterCall& call) {
  const auto number = number_of(call.input);
  if (!number)
    throw TemplateError(fmt::format("the filter abs takes a number, not {}", type_name(call.input)));
  if (*number < 0) return negate(call.input);
  return compute(call.work, Arithmetic::add, std::int64_t{0}, call.input);
}

const std::map<std::string, FilterEntry, std::less<>>& filters() {
  static const std::map<std::string, FilterEntry, std::less<>> table{
      {"abs", {{}, absolute}},
      {"capitalize", {{}, change_text<capitalize>}},
      {"count", {{}, length}},
      {"d", {{"default_value", "boolean"}, use_default}},
      {"default", {{"default_value", "boolean"}, use_default}},
      {"first", {{}, first}},
      {"float", {{"default"}, to_float}},
      {"indent", {{"width", "first", "blank"}, indent}},
      {"int", {{"default", "base"}, to_int}},
      {"items", {{}, items}},
      {"join", {{"d", "attribute"}, join}},
      {"last", {{}, last}},
      {"length", {{}, length}},
      {"list", {{}, to_list}},
      {"lower", {{}, change_text<to_lower>}},
      {"replace", {{"old", "new", "count"}, replace}},
      {"reverse", {{}, reverse}},
      {"safe", {{}, safe}},
      {"string", {{}, to_string}},
      {"title", {{}, change_text<title_filter>}},
      {"tojson", {{"ensure_ascii", "indent", "separators", "sort_keys"}, to_json_filter}},
      {"trim", {{"chars"}, trim}},
      {"upper", {{}, change_text<to_upper>}},
  };
  return table;
}

// The arguments behind the first `count`, which name an attribute, a test or a filter.
Arguments rest_of(const Arguments& arguments, std::size_t count) {
  Arguments rest = arguments;
  const std::size_t taken = std::min(count, rest.positional.size());
  rest.positional.erase(rest.positional.begin(),
                        rest.positional.begin() + static_cast<std::ptrdiff_t>(taken));
  return rest;
}

const std::string& name_argument(const Arguments& arguments, std::size_t index, const std::string& callee) {
  const std::string* name =
      index < arguments.positional.size() ? text_of(arguments.positional[index]) : nullptr;
  if (name == nullptr)
    throw TemplateError(fmt::format("the filter {} lacks a name, or it is no string", callee));
  return *name;
}

// select, reject, selectattr("attribute"), rejectattr: the elements that pass a test, or that are true.
Value select(Work& work, const std::string& name, const Value& input, const Arguments& arguments) {
  const bool by_attribute = name.ends_with("attr");
  const bool keeps_passing = name.starts_with("select");
  const std::size_t test_at = by_attribute ? 1 : 0;
  if (by_attribute && arguments.positional.empty())
    throw TemplateError(fmt::format("the filter {} lacks the name of an attribute", name));
  const bool has_test = arguments.positional.size() > test_at;
  const Arguments test_arguments = rest_of(arguments, test_at + 1);
  std::vector<Value> kept;
  // Of what is false, None for one, there is nothing to pick.
  const auto elements = elements_of(work, is_true(input) ? input : Value(Undefined{}));
  for (const Value& element : elements->items) {
    work.charge(element_cost);
    const Value subject = by_attribute ? attribute_of(work, element, arguments.positional[0]) : element;
    const bool passes =
        has_test ? passes_test(work, name_argument(arguments, test_at, name), subject, test_arguments)
                 : is_true(subject);
    if (passes == keeps_passing) kept.push_back(element);
  }
  return make_list(work, std::move(kept), ListKind::generator);
}

// map("filter", ...) or map(attribute="a.b", default=x).
Value map_elements(Work& work, const Value& input, const Arguments& arguments) {
  std::vector<Value> mapped;
  const auto elements = elements_of(work, is_true(input) ? input : Value(Undefined{}));
  const bool by_attribute = arguments.positional.empty();
  const auto named = by_attribute ? bind(arguments, "the filter map", {"attribute", "default"})
                                  : std::vector<std::optional<Value>>();
  if (by_attribute) (void)required(named[0], "the filter map");
  // Maps of maps would nest as deep as a template has arguments.
  if (!by_attribute && name_argument(arguments, 0, "map") == "map")
    throw TemplateError("the filter map inside of map is not supported");
  const Arguments filter_arguments = rest_of(arguments, 1);
  for (const Value& element : elements->items) {
    work.charge(element_cost);
    Value result = by_attribute
                       ? attribute_of(work, element, *named[0])
                       : apply_filter(work, name_argument(arguments, 0, "map"), element, filter_arguments);
    if (by_attribute && named[1] && is_undefined(result)) result = *named[1];
    mapped.push_back(std::move(result));
  }
  return make_list(work, std::move(mapped), ListKind::generator);
}

std::int64_t remainder_of(Work& work, const Value& input, const Value& divisor) {
  const Value rest = compute(work, Arithmetic::modulo, input, divisor);
  const auto number = number_of(rest);
  if (!number) throw TemplateError("a remainder is asked of what is no number");
  return *number == 0 ? 0 : *number == 1 ? 1 : 2;
}

using TestBody = bool (*)(Work&, const Value&, const std::vector<std::optional<Value>>&);
struct TestEntry {
  std::size_t arguments;
  TestBody body;
};

template <Comparison comparison>
bool compares(Work& work, const Value& input, const std::vector<std::optional<Value>>& arguments) {
  return compare(work, comparison, input, *arguments[0]);
}

bool has_sequence(const Value& v) {
  const List* list = list_of(v);
  return text_of(v) != nullptr || dict_of(v) != nullptr || is_undefined(v) ||
         (list != nullptr && list->kind <= ListKind::range);
}

bool is_same(Work& work, const Value& a, const Value& b) {
  if (a.index() != b.index()) return false;
  if (const Text* text = get<Text>(a)) return *text == *get<Text>(b);
  if (const auto* list = get<std::shared_ptr<const List>>(a))
    return *list == *get<std::shared_ptr<const List>>(b);
  if (const auto* dict = get<std::shared_ptr<const Dict>>(a))
    return *dict == *get<std::shared_ptr<const Dict>>(b);
  return are_equal(work, a, b);
}

const std::map<std::string, TestEntry, std::less<>>& tests() {
  using Given = const std::vector<std::optional<Value>>&;
  static const std::map<std::string, TestEntry, std::less<>> table{
      {"!=", {1, compares<Comparison::unequal>}},
      {"<", {1, compares<Comparison::less>}},
      {"<=", {1, compares<Comparison::less_equal>}},
      {"==", {1, compares<Comparison::equal>}},
      {">", {1, compares<Comparison::greater>}},
      {">=", {1, compares<Comparison::greater_equal>}},
      {"boolean", {0, [](Work&, const Value& v, Given) { return get<bool>(v) != nullptr; }}},
      {"callable", {0, [](Work&, const Value& v, Given) { return get<Function>(v) != nullptr; }}},
      {"defined", {0, [](Work&, const Value& v, Given) { return !is_undefined(v); }}},
      {"divisibleby", {1, [](Work& w, const Value& v, Given a) { return remainder_of(w, v, *a[0]) == 0; }}},
      {"eq", {1, compares<Comparison::equal>}},
      {"equalto", {1, compares<Comparison::equal>}},
      {"even", {0, [](Work& w, const Value& v, Given) { return remainder_of(w, v, std::int64_t{2}) == 0; }}},
      {"false", {0, [](Work&, const Value& v, Given) { return get<bool>(v) != nullptr && !*get<bool>(v); }}},
      {"float", {0, [](Work&, const Value& v, Given) { return get<double>(v) != nullptr; }}},
      {"ge", {1, compares<Comparison::greater_equal>}},
      {"greaterthan", {1, compares<Comparison::greater>}},
      {"gt", {1, compares<Comparison::greater>}},
      {"in", {1, compares<Comparison::in>}},
      {"integer", {0, [](Work&, const Value& v, Given) { return get<std::int64_t>(v) != nullptr; }}},
      {"iterable",
       {0,
        [](Work&, const Value& v, Given) {
          return text_of(v) != nullptr || list_of(v) != nullptr || dict_of(v) != nullptr || is_undefined(v);
        }}},
      {"le", {1, compares<Comparison::less_equal>}},
      {"lessthan", {1, compares<Comparison::less>}},
      {"lt", {1, compares<Comparison::less>}},
      {"mapping", {0, [](Work&, const Value& v, Given) { return dict_of(v) != nullptr; }}},
      {"ne", {1, compares<Comparison::unequal>}},
      {"none", {0, [](Work&, const Value& v, Given) { return is_none(v); }}},
      {"number", {0, [](Work&, const Value& v, Given) { return number_of(v).has_value(); }}},
      {"odd", {0, [](Work& w, const Value& v, Given) { return remainder_of(w, v, std::int64_t{2}) == 1; }}},
      {"sameas", {1, [](Work& w, const Value& v, Given a) { return is_same(w, v, *a[0]); }}},
      {"sequence", {0, [](Work&, const Value& v, Given) { return has_sequence(v); }}},
      {"string", {0, [](Work&, const Value& v, Given) { return text_of(v) != nullptr; }}},
      {"true", {0, [](Work&, const Value& v, Given) { return get<bool>(v) != nullptr && *get<bool>(v); }}},
      {"undefined", {0, [](Work&, const Value& v, Given) { return is_undefined(v); }}},
  };
  return table;
}

}  // namespace

Value apply_filter(Work& work, const std::string& name, const Value& input, const Arguments& arguments) {
  work.charge(step_cost);
  if (name == "select" || name == "reject" || name == "selectattr" || name == "rejectattr")
    return select(work, name, input, arguments);
  if (name == "map") return map_elements(work, input, arguments);
  const auto filter = filters().find(name);
  if (filter == filters().end())
    throw TemplateError(fmt::format("the filter {} is not supported", name.substr(0, 60)));
  const std::string callee = "the filter " + name;
  return filter->second.body({work, callee, input, bind(arguments, callee, filter->second.parameters)});
}

bool passes_test(Work& work, const std::string& name, const Value& input, const Arguments& arguments) {
  work.charge(step_cost);
  const auto test = tests().find(name);
  if (test == tests().end())
    throw TemplateError(fmt::format("the test {} is not supported", name.substr(0, 60)));
  const std::string callee = "the test " + name;
  const std::size_t count = test->second.arguments;
  const auto bound =
      bind(arguments, callee,
           count == 0 ? std::vector<std::string_view>() : std::vector<std::string_view>{"other"});
  if (count > 0) (void)required(bound[0], callee);
  return test->second.body(work, input, bound);
}

}  // namespace sinkscope::jinja
