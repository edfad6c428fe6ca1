#include "text/jinja/members.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/find_text.h"
#include "text/jinja/python_text.h"

namespace sinkscope::jinja {
namespace {

// Python's own names, so that an unsupported method is refused instead of being taken for an attribute that
// is not there.
constexpr std::string_view text_methods[] = {
    "capitalize", "casefold",     "center",       "count",   "encode",     "endswith",    "expandtabs",
    "find",       "format",       "format_map",   "index",   "isalnum",    "isalpha",     "isascii",
    "isdecimal",  "isdigit",      "isidentifier", "islower", "isnumeric",  "isprintable", "isspace",
    "istitle",    "isupper",      "join",         "ljust",   "lower",      "lstrip",      "maketrans",
    "partition",  "removeprefix", "removesuffix", "replace", "rfind",      "rindex",      "rjust",
    "rpartition", "rsplit",       "rstrip",       "split",   "splitlines", "startswith",  "strip",
    "swapcase",   "title",        "translate",    "upper",   "zfill"};
constexpr std::string_view dict_methods[] = {"clear", "copy",    "fromkeys",   "get",    "items", "keys",
                                             "pop",   "popitem", "setdefault", "update", "values"};
constexpr std::string_view list_methods[] = {"append", "clear", "copy",   "count",   "extend", "index",
                                             "insert", "pop",   "remove", "reverse", "sort"};

template <std::size_t count>
bool is_among(const std::string_view (&names)[count], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_method(const Value& object, std::string_view name) {
  if (text_of(object) != nullptr) return is_among(text_methods, name);
  if (dict_of(object) != nullptr) return is_among(dict_methods, name);
  return list_of(object) != nullptr && is_among(list_methods, name);
}

Value missing(const Value& object, std::string_view name) {
  return make_undefined(fmt::format("{} has no attribute \"{}\"", type_name(object), name.substr(0, 100)));
}

Value get_loop_member(const Loop& loop, const Value& object, std::string_view name) {
  const auto length = static_cast<std::int64_t>(loop.items->items.size());
  const auto item = [&](std::int64_t index) {
    if (index >= 0 && index < length) return loop.items->items[static_cast<std::size_t>(index)];
    return make_undefined(index < 0 ? "there is no previous item" : "there is no next item");
  };
  if (name == "index") return loop.index0 + 1;
  if (name == "index0") return loop.index0;
  if (name == "revindex") return length - loop.index0;
  if (name == "revindex0") return length - loop.index0 - 1;
  if (name == "first") return loop.index0 == 0;
  if (name == "last") return loop.index0 + 1 == length;
  if (name == "length") return length;
  if (name == "previtem") return item(loop.index0 - 1);
  if (name == "nextitem") return item(loop.index0 + 1);
  if (name == "depth") return std::int64_t{1};  // more only in recursive loops
  if (name == "depth0") return std::int64_t{0};
  if (name == "cycle" || name == "changed")
    throw TemplateError(fmt::format("loop.{} is not supported", name));
  return missing(object, name);
}

// Where an index lands in a sequence of `size`; nothing outside.
std::optional<std::size_t> place_of(std::int64_t index, std::size_t size) {
  const auto length = static_cast<std::int64_t>(size);
  if (index < 0) index += length;
  if (index < 0 || index >= length) return std::nullopt;
  return static_cast<std::size_t>(index);
}

Value get_indexed(Work& work, const Value& object, std::int64_t index) {
  if (const List* list = list_of(object); list != nullptr && list->kind <= ListKind::range) {
    if (const auto place = place_of(index, list->items.size())) return list->items[*place];
  } else if (const std::string* text = text_of(object)) {
    work.charge(text->size() * 16);
    const auto characters = characters_of(*text);
    if (const auto place = place_of(index, characters.size()))
      return make_text(work, std::string(characters[*place]));
  }
  return make_undefined(fmt::format("{} has no element {}", type_name(object), index));
}

// The indices that begin:end:step picks of `size` elements, as Python's slice.indices.
std::vector<std::size_t> picked_indices(std::size_t size, const std::optional<std::int64_t>& begin,
                                        const std::optional<std::int64_t>& end, std::int64_t step) {
  const auto length = static_cast<std::int64_t>(size);
  const std::int64_t lowest = step < 0 ? -1 : 0;
  const std::int64_t highest = step < 0 ? length - 1 : length;
  const auto bound = [&](const std::optional<std::int64_t>& value, std::int64_t fallback) {
    if (!value) return fallback;
    return std::clamp(*value < 0 ? *value + length : *value, lowest, highest);
  };
  const std::int64_t first = bound(begin, step < 0 ? highest : lowest);
  const std::int64_t stop = bound(end, step < 0 ? lowest : highest);
  std::vector<std::size_t> indices;
  // A step beyond the length picks one element and must not run over.
  const std::int64_t stride = std::clamp(step, -length - 1, length + 1);
  for (std::int64_t i = first; step < 0 ? i > stop : i < stop; i += stride)
    indices.push_back(static_cast<std::size_t>(i));
  return indices;
}

std::optional<std::int64_t> slice_bound(const Value& value) {
  if (is_none(value)) return std::nullopt;
  if (const auto integer = integer_of(value)) return integer;
  if (const Undefined* undefined = get<Undefined>(value)) throw_undefined(*undefined);
  throw TemplateError(fmt::format("a slice takes integers, not {}", type_name(value)));
}

Value list_of_texts(Work& work, const std::vector<std::string_view>& parts) {
  std::vector<Value> items;
  items.reserve(parts.size());
  for (const std::string_view part : parts) {
    work.charge(element_cost);
    items.push_back(make_text(work, std::string(part)));
  }
  return make_list(work, std::move(items));
}

// One call of a method of a text.
class TextMethod {
 public:
  TextMethod(Work& work, const std::string& text, const std::string& name, const Arguments& arguments)
      : work_(work), text_(text), name_("str." + name), arguments_(arguments) {
    // Every method walks through the text once or makes pieces of it.
    work.charge(text.size() * 2);
  }

  std::optional<Value> call(std::string_view name) const {
    if (name == "strip") return strip(Ends::both);
    if (name == "lstrip") return strip(Ends::left);
    if (name == "rstrip") return strip(Ends::right);
    if (name == "split" || name == "rsplit") return split(name == "rsplit");
    if (name == "splitlines") return split_into_lines();
    if (name == "startswith" || name == "endswith") return has_affix(name == "startswith");
    if (name == "removeprefix" || name == "removesuffix") return remove_affix(name == "removeprefix");
    if (name == "replace") return replace();
    if (name == "upper") return bind_none(), make_text(work_, to_upper(text_));
    if (name == "lower") return bind_none(), make_text(work_, to_lower(text_));
    if (name == "title") return bind_none(), make_text(work_, title_words(text_));
    if (name == "capitalize") return bind_none(), make_text(work_, capitalize(text_));
    if (name == "join") return join();
    if (name == "find" || name == "rfind") return find_position(name == "rfind");
    if (name == "count") return count();
    return std::nullopt;
  }

 private:
  void bind_none() const { (void)bind(arguments_, name_, {}); }
  std::vector<std::optional<Value>> bound(const std::vector<std::string_view>& parameters) const {
    return bind(arguments_, name_, parameters);
  }
  std::string text_argument(const std::optional<Value>& argument) const {
    (void)required(argument, name_);
    std::string text = text_or(argument, name_, "");
    work_.charge(text.size());
    return text;
  }

  Value strip(Ends ends) const {
    const auto given = bound({"chars"});
    if (!given[0] || is_none(*given[0])) return make_text(work_, std::string(strip_space(text_, ends)));
    const std::string characters = text_argument(given[0]);
    work_.charge(std::uint64_t{text_.size()} * characters.size() / 16);
    return make_text(work_, std::string(strip_characters(text_, characters, ends)));
  }

  Value split(bool from_right) const {
    const auto given = bound({"sep", "maxsplit"});
    const std::int64_t most = integer_or(given[1], name_, -1);
    work_.charge(text_.size() * 16);  // the most that the places of the parts take
    if (!given[0] || is_none(*given[0])) {
      if (from_right && most >= 0)
        throw TemplateError("str.rsplit with a limit and no separator is not supported");
      return list_of_texts(work_, split_at_space(text_, most));
    }
    const std::string separator = text_argument(given[0]);
    if (separator.empty()) throw TemplateError(name_ + " has an empty separator");
    return list_of_texts(
        work_, from_right ? split_at_from_right(text_, separator, most) : split_at(text_, separator, most));
  }

  Value split_into_lines() const {
    bind_none();
    work_.charge(text_.size() * 16);
    return list_of_texts(work_, split_lines(text_));
  }

  bool has_affix(const std::string& affix, bool at_start) const {
    work_.charge(affix.size() + step_cost);
    return at_start ? std::string_view(text_).starts_with(affix) : std::string_view(text_).ends_with(affix);
  }

  // Of a tuple any may stand there.
  Value has_affix(bool at_start) const {
    const auto given = bound({"prefix"});
    const Value& affix = required(given[0], name_);
    const List* several = list_of(affix);
    if (several == nullptr || several->kind != ListKind::tuple)
      return has_affix(text_or(affix, name_, ""), at_start);
    return std::any_of(several->items.begin(), several->items.end(),
                       [&](const Value& one) { return has_affix(text_or(one, name_, ""), at_start); });
  }

  Value remove_affix(bool at_start) const {
    const std::string affix = text_argument(bound({"prefix"})[0]);
    if (!has_affix(affix, at_start)) return make_text(work_, text_);
    return make_text(work_,
                     at_start ? text_.substr(affix.size()) : text_.substr(0, text_.size() - affix.size()));
  }

  Value replace() const {
    const auto given = bound({"old", "new", "count"});
    return replace_in(text_argument(given[0]), text_argument(given[1]), integer_or(given[2], name_, -1));
  }
  Value replace_in(const std::string& from, const std::string& to, std::int64_t most) const {
    // Charged before it is made, by the most that may come out.
    const std::uint64_t places = text_.size() / std::max<std::size_t>(1, from.size()) + 1;
    work_.charge(places * 16);
    if (to.size() > from.size()) {
      const std::uint64_t found = from.empty() ? places : split_at(text_, from, most).size() - 1;
      work_.charge(found * to.size());
    }
    return make_text(work_, replace_text(text_, from, to, most));
  }

  Value join() const {
    const auto given = bound({"iterable"});
    const auto elements = elements_of(work_, required(given[0], name_));
    std::string out;
    for (const Value& element : elements->items) {
      const std::string* part = text_of(element);
      if (part == nullptr)
        throw TemplateError(fmt::format("str.join takes strings, not {}", type_name(element)));
      work_.charge(part->size() + text_.size() + step_cost);
      if (&element != elements->items.data()) out.append(text_);
      out.append(*part);
    }
    return make_text(work_, std::move(out));
  }

  Value find_position(bool from_right) const {
    const std::string part = text_argument(bound({"sub"})[0]);
    std::size_t at = find_text(text_, part);
    if (from_right && at != std::string_view::npos)
      at = text_.size() - split_at_last(part).size() - part.size();
    if (at == std::string_view::npos) return std::int64_t{-1};
    return static_cast<std::int64_t>(count_characters(std::string_view(text_).substr(0, at)));
  }
  // What is behind the last occurrence of part, which is there.
  std::string_view split_at_last(const std::string& part) const {
    if (part.empty()) return {};
    return split_at_from_right(text_, part, 1).back();
  }

  Value count() const {
    const std::string part = text_argument(bound({"sub"})[0]);
    if (part.empty()) return static_cast<std::int64_t>(count_characters(text_)) + 1;
    work_.charge(text_.size() * 16 / part.size());
    return static_cast<std::int64_t>(split_at(text_, part, -1).size()) - 1;
  }

  Work& work_;
  const std::string& text_;
  const std::string name_;  // in errors
  const Arguments& arguments_;
};

std::optional<Value> call_dict_method(Work& work, const Dict& dict, std::string_view name,
                                      const Arguments& arguments) {
  work.charge(dict.entries.size() * element_cost);
  if (name == "get") {
    const auto given = bind(arguments, "dict.get", {"key", "default"});
    const std::string* key = text_of(required(given[0], "dict.get"));
    const Value* found = key == nullptr ? nullptr : find(dict, *key);
    if (found != nullptr) return *found;
    return given[1] ? *given[1] : Value(None{});
  }
  if (name != "items" && name != "keys" && name != "values") return std::nullopt;
  (void)bind(arguments, "dict." + std::string(name), {});
  std::vector<Value> items;
  for (const auto& [key, value] : dict.entries) {
    if (name == "values")
      items.push_back(value);
    else if (name == "keys")
      items.push_back(make_text(work, key));
    else
      items.push_back(make_list(work, {make_text(work, key), value}, ListKind::tuple));
  }
  return make_list(work, std::move(items), ListKind::view);
}

}  // namespace

Value get_member(Work& work, const Value& object, const std::string& name) {
  work.charge(step_cost);
  if (const Undefined* undefined = get<Undefined>(object)) throw_undefined(*undefined);
  if (is_method(object, name))
    throw TemplateError(fmt::format("the method {} of {} is named and not called", name, type_name(object)));
  if (const Dict* dict = dict_of(object)) {
    work.charge(dict->entries.size() * step_cost);
    if (const Value* value = find(*dict, name)) return *value;
  } else if (Namespace* const* space = get<Namespace*>(object)) {
    const auto attribute = (*space)->attributes.find(name);
    if (attribute != (*space)->attributes.end()) return attribute->second;
  } else if (const auto* loop = get<std::shared_ptr<const Loop>>(object)) {
    return get_loop_member(**loop, object, name);
  }
  return missing(object, name);
}

Value get_element(Work& work, const Value& object, const Value& key) {
  work.charge(step_cost);
  if (const Undefined* undefined = get<Undefined>(object)) throw_undefined(*undefined);
  if (const std::string* name = text_of(key)) {
    if (const Dict* dict = dict_of(object)) {
      work.charge(dict->entries.size() * step_cost);
      if (const Value* value = find(*dict, *name)) return *value;
    }
    return get_member(work, object, *name);
  }
  if (const auto index = integer_of(key)) return get_indexed(work, object, *index);
  return make_undefined(fmt::format("{} has no element at {}", type_name(object), type_name(key)));
}

Value get_slice(Work& work, const Value& object, const Value& begin, const Value& end, const Value& step) {
  if (const Undefined* undefined = get<Undefined>(object)) throw_undefined(*undefined);
  const List* list = list_of(object);
  const std::string* text = text_of(object);
  if (text == nullptr && (list == nullptr || list->kind > ListKind::range))
    throw TemplateError(fmt::format("{} cannot be sliced", type_name(object)));
  const auto first = slice_bound(begin), last = slice_bound(end);
  const std::int64_t stride = slice_bound(step).value_or(1);
  if (stride == 0) throw TemplateError("the step of a slice is 0");
  if (text != nullptr) {
    work.charge(text->size() * 24);
    const auto characters = characters_of(*text);
    std::string out;
    for (const std::size_t index : picked_indices(characters.size(), first, last, stride))
      out.append(characters[index]);
    return make_text(work, std::move(out));
  }
  work.charge(list->items.size() * element_cost);
  std::vector<Value> items;
  for (const std::size_t index : picked_indices(list->items.size(), first, last, stride))
    items.push_back(list->items[index]);
  return make_list(work, std::move(items), list->kind);
}

std::optional<Value> call_method(Work& work, const Value& object, const std::string& name,
                                 const Arguments& arguments) {
  if (!is_method(object, name)) return std::nullopt;
  std::optional<Value> result;
  if (const std::string* text = text_of(object))
    result = TextMethod(work, *text, name, arguments).call(name);
  else if (const Dict* dict = dict_of(object))
    result = call_dict_method(work, *dict, name, arguments);
  if (!result)
    throw TemplateError(fmt::format("the method {} of {} is not supported", name, type_name(object)));
  return result;
}

}  // namespace sinkscope::jinja
