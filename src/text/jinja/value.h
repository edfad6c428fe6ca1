// The values of a template: Python's, as far as chat templates need them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "text/jinja/work.h"

namespace sinkscope::jinja {

struct List;
struct Dict;
struct Namespace;
struct Loop;
struct Macro;  // of the syntax tree

using Text = std::shared_ptr<const std::string>;  // valid UTF-8

/// Falsy, prints nothing, has no elements; everything else that is asked of it is an error, and `why` its
/// words.
struct Undefined {
  Text why;
};
struct None {};

/// The functions a template finds without defining them.
enum class Global { make_namespace, range, raise_exception, strftime_now, make_dict };
using Function = std::variant<Global, const Macro*>;

/// Namespaces are owned by the evaluator, all else is shared and never changes; so there are no cycles of
/// ownership.
using Value = std::variant<Undefined, None, bool, std::int64_t, double, Text, std::shared_ptr<const List>,
                           std::shared_ptr<const Dict>, Namespace*, std::shared_ptr<const Loop>, Function>;

/// What Python would call a list of this sort. It decides how it prints and what may be asked of it.
enum class ListKind { list, tuple, range, view, generator };

struct List {
  std::vector<Value> items;
  ListKind kind = ListKind::list;
  int depth = 1;  // 1 + that of the deepest element
};

/// Entries in the order in which they came. Keys are texts.
struct Dict {
  std::vector<std::pair<std::string, Value>> entries;
  int depth = 1;
};

struct Namespace {
  std::map<std::string, Value, std::less<>> attributes;
};

/// `loop` in one turn of a for.
struct Loop {
  std::shared_ptr<const List> items;
  std::int64_t index0 = 0;
};

template <typename T>
const T* get(const Value& value) {
  return std::get_if<T>(&value);
}
inline bool is_undefined(const Value& value) { return get<Undefined>(value) != nullptr; }
inline bool is_none(const Value& value) { return get<None>(value) != nullptr; }
inline const std::string* text_of(const Value& value) {
  const Text* text = get<Text>(value);
  return text == nullptr ? nullptr : text->get();
}
inline const List* list_of(const Value& value) {
  const auto* list = get<std::shared_ptr<const List>>(value);
  return list == nullptr ? nullptr : list->get();
}
inline const Dict* dict_of(const Value& value) {
  const auto* dict = get<std::shared_ptr<const Dict>>(value);
  return dict == nullptr ? nullptr : dict->get();
}
/// Integers, and booleans, which are integers in Python.
std::optional<std::int64_t> integer_of(const Value& value);
/// Those and real numbers.
std::optional<double> number_of(const Value& value);

/// Makers of values; they charge for what they make. A list or dict nested too deep throws TemplateError.
Value make_text(Work& work, std::string text);
Value make_list(Work& work, std::vector<Value> items, ListKind kind = ListKind::list);
Value make_dict(Work& work, std::vector<std::pair<std::string, Value>> entries);
Value make_undefined(std::string why);

const Value* find(const Dict& dict, std::string_view key);

/// Python's truth.
bool is_true(const Value& value);
/// "a string", "None": what a value is called in errors.
std::string type_name(const Value& value);
/// Python's ==.
bool are_equal(Work& work, const Value& left, const Value& right);
/// What is printed for a value: Python's str.
std::string to_text(Work& work, const Value& value);
/// The elements that a for would meet: of a list, of a dict its keys, of a text its characters; of an
/// undefined value none. Throws TemplateError for others.
std::shared_ptr<const List> elements_of(Work& work, const Value& value);

/// A real number as Python prints it: 1.0, 0.1, 1e+16, inf.
std::string print_real(double number);
/// The error for a value that is undefined, in its own words.
[[noreturn]] void throw_undefined(const Undefined& value);

}  // namespace sinkscope::jinja
