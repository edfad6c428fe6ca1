#include "text/jinja/value.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cmath>

#include "text/unicode.h"

namespace sinkscope::jinja {
namespace {

int depth_of(const Value& value) {
  if (const List* list = list_of(value)) return list->depth;
  if (const Dict* dict = dict_of(value)) return dict->depth;
  if (const auto* loop = get<std::shared_ptr<const Loop>>(value)) return (*loop)->items->depth + 1;
  return 0;
}

int checked_depth(int deepest_element) {
  if (deepest_element >= max_value_depth)
    throw TemplateError(fmt::format("lists and dicts nest more than {} deep", max_value_depth));
  return deepest_element + 1;
}

const char* list_name(ListKind kind) {
  constexpr const char* names[] = {"a list", "a tuple", "a range", "a dict's view", "a filter's sequence"};
  return names[static_cast<std::size_t>(kind)];
}

bool is_printable(std::uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return c == ' ';
    default:
      return true;
  }
}

void append_character(std::string& out, std::uint32_t c, char quote) {
  if (c == static_cast<unsigned char>(quote) || c == '\\')
    out.append(1, '\\').append(1, static_cast<char>(c));
  else if (c == '\n')
    out.append("\\n");
  else if (c == '\r')
    out.append("\\r");
  else if (c == '\t')
    out.append("\\t");
  else if (is_printable(c))
    append_utf8(out, c);
  else
    out.append(c < 0x100     ? fmt::format("\\x{:02x}", c)
               : c < 0x10000 ? fmt::format("\\u{:04x}", c)
                             : fmt::format("\\U{:08x}", c));
}

// Python's repr of a text.
std::string quote_text(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    append_character(out, c.code_point, quote);
    text.remove_prefix(std::max<std::size_t>(1, c.length));
  }
  return out + quote;
}

std::string represent(Work& work, const Value& value);

std::string represent_list(Work& work, const List& list) {
  if (list.kind != ListKind::list && list.kind != ListKind::tuple)
    throw TemplateError(fmt::format("{} cannot be printed; `| list` makes it a list", list_name(list.kind)));
  const bool is_tuple = list.kind == ListKind::tuple;
  std::string out = is_tuple ? "(" : "[";
  for (std::size_t i = 0; i < list.items.size(); ++i)
    out.append(i > 0 ? ", " : "").append(represent(work, list.items[i]));
  if (is_tuple) return out + (list.items.size() == 1 ? ",)" : ")");
  return out + "]";
}

std::string represent_dict(Work& work, const Dict& dict) {
  std::string out = "{";
  for (const auto& [key, value] : dict.entries)
    out.append(out.size() > 1 ? ", " : "")
        .append(quote_text(key))
        .append(": ")
        .append(represent(work, value));
  return out + "}";
}

std::string represent(Work& work, const Value& value) {
  work.charge(step_cost);
  if (const std::string* text = text_of(value)) {
    work.charge(text->size());
    return quote_text(*text);
  }
  if (is_undefined(value)) return "Undefined";
  return to_text(work, value);
}

bool are_equal_lists(Work& work, const List& left, const List& right) {
  return left.kind == right.kind && left.items.size() == right.items.size() &&
         std::equal(left.items.begin(), left.items.end(), right.items.begin(),
                    [&](const Value& a, const Value& b) { return are_equal(work, a, b); });
}

bool are_equal_dicts(Work& work, const Dict& left, const Dict& right) {
  if (left.entries.size() != right.entries.size()) return false;
  return std::all_of(left.entries.begin(), left.entries.end(), [&](const auto& entry) {
    work.charge(right.entries.size() * element_cost);
    const Value* other = find(right, entry.first);
    return other != nullptr && are_equal(work, entry.second, *other);
  });
}

}  // namespace

std::optional<std::int64_t> integer_of(const Value& value) {
  if (const bool* boolean = get<bool>(value)) return *boolean ? 1 : 0;
  if (const std::int64_t* integer = get<std::int64_t>(value)) return *integer;
  return std::nullopt;
}

std::optional<double> number_of(const Value& value) {
  if (const double* real = get<double>(value)) return *real;
  if (const auto integer = integer_of(value)) return static_cast<double>(*integer);
  return std::nullopt;
}

Value make_text(Work& work, std::string text) {
  work.charge(step_cost + text.size());
  return std::make_shared<const std::string>(std::move(text));
}

Value make_list(Work& work, std::vector<Value> items, ListKind kind) {
  work.charge(step_cost + items.size() * element_cost);
  int deepest = 0;
  for (const Value& item : items) deepest = std::max(deepest, depth_of(item));
  return std::make_shared<const List>(List{std::move(items), kind, checked_depth(deepest)});
}

Value make_dict(Work& work, std::vector<std::pair<std::string, Value>> entries) {
  work.charge(step_cost + entries.size() * element_cost);
  int deepest = 0;
  for (const auto& entry : entries) deepest = std::max(deepest, depth_of(entry.second));
  return std::make_shared<const Dict>(Dict{std::move(entries), checked_depth(deepest)});
}

Value make_undefined(std::string why) {
  return Undefined{std::make_shared<const std::string>(std::move(why))};
}

const Value* find(const Dict& dict, std::string_view key) {
  for (const auto& [name, value] : dict.entries)
    if (name == key) return &value;
  return nullptr;
}

bool is_true(const Value& value) {
  if (is_undefined(value) || is_none(value)) return false;
  if (const auto number = number_of(value)) return *number != 0;
  if (const std::string* text = text_of(value)) return !text->empty();
  if (const List* list = list_of(value)) return list->kind == ListKind::generator || !list->items.empty();
  if (const Dict* dict = dict_of(value)) return !dict->entries.empty();
  return true;
}

std::string type_name(const Value& value) {
  if (const List* list = list_of(value)) return list_name(list->kind);
  constexpr const char* names[] = {"an undefined value", "None",     "a boolean", "an integer",
                                   "a real number",      "a string", "a list",    "a dict",
                                   "a namespace",        "a loop",   "a function"};
  static_assert(std::size(names) == std::variant_size_v<Value>);
  return names[value.index()];
}

bool are_equal(Work& work, const Value& left, const Value& right) {
  work.charge(step_cost);
  const auto left_integer = integer_of(left), right_integer = integer_of(right);
  if (left_integer && right_integer) return *left_integer == *right_integer;
  const auto left_number = number_of(left), right_number = number_of(right);
  if (left_number && right_number) return *left_number == *right_number;
  if (left.index() != right.index()) return false;
  if (const std::string* text = text_of(left)) {
    work.charge(text->size());
    return *text == *text_of(right);
  }
  if (const List* list = list_of(left)) return are_equal_lists(work, *list, *list_of(right));
  if (const Dict* dict = dict_of(left)) return are_equal_dicts(work, *dict, *dict_of(right));
  if (get<Namespace*>(left) != nullptr) return *get<Namespace*>(left) == *get<Namespace*>(right);
  if (get<Function>(left) != nullptr) return *get<Function>(left) == *get<Function>(right);
  if (const auto* loop = get<std::shared_ptr<const Loop>>(left))
    return *loop == *get<std::shared_ptr<const Loop>>(right);
  return true;  // None, or both undefined
}

std::string to_text(Work& work, const Value& value) {
  work.charge(step_cost);
  if (is_undefined(value)) return "";
  if (is_none(value)) return "None";
  if (const bool* boolean = get<bool>(value)) return *boolean ? "True" : "False";
  if (const std::int64_t* integer = get<std::int64_t>(value)) return std::to_string(*integer);
  if (const double* real = get<double>(value)) return print_real(*real);
  if (const std::string* text = text_of(value)) {
    work.charge(text->size());
    return *text;
  }
  if (const List* list = list_of(value)) return represent_list(work, *list);
  if (const Dict* dict = dict_of(value)) return represent_dict(work, *dict);
  throw TemplateError(fmt::format("{} cannot be printed", type_name(value)));
}

std::shared_ptr<const List> elements_of(Work& work, const Value& value) {
  if (const auto* list = get<std::shared_ptr<const List>>(value)) {
    work.charge(step_cost);
    return *list;
  }
  std::vector<Value> items;
  if (const Dict* dict = dict_of(value)) {
    for (const auto& entry : dict->entries) items.push_back(make_text(work, entry.first));
  } else if (const std::string* text = text_of(value)) {
    for (std::string_view rest = *text; !rest.empty();) {
      const std::size_t length = std::max<std::size_t>(1, decode_utf8(rest).length);
      items.push_back(make_text(work, std::string(rest.substr(0, length))));
      work.charge(element_cost);
      rest.remove_prefix(length);
    }
  } else if (!is_undefined(value)) {
    throw TemplateError(fmt::format("{} has no elements to go through", type_name(value)));
  }
  return std::get<std::shared_ptr<const List>>(make_list(work, std::move(items)));
}

std::string print_real(double number) {
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (std::isnan(number)) return "nan";
  std::string text = fmt::format("{}", number);
  if (text.find_first_not_of("-0123456789") == std::string::npos) text += ".0";
  return text;
}

void throw_undefined(const Undefined& value) { throw TemplateError(*value.why); }

}  // namespace sinkscope::jinja
