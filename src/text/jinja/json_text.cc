#include "text/jinja/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/unicode.h"

namespace sinkscope::jinja {
namespace {

void append_character(std::string& out, std::uint32_t c, bool ascii_only) {
  constexpr std::string_view plain = "\"\\\b\f\n\r\t";
  constexpr std::string_view letters = "\"\\bfnrt";
  if (c < 0x80)
    if (const std::size_t at = plain.find(static_cast<char>(c)); at != std::string_view::npos) {
      out.append(1, '\\').append(1, letters[at]);
      return;
    }
  if (c >= 0x10000 && ascii_only)
    out.append(
        fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + ((c - 0x10000) >> 10), 0xDC00 + ((c - 0x10000) & 0x3FF)));
  else if (c < 0x20 || (ascii_only && c > 0x7E))
    out.append(fmt::format("\\u{:04x}", c));
  else
    append_utf8(out, c);
}

std::string quote(Work& work, std::string_view text, bool ascii_only) {
  work.charge(text.size() * 2);
  std::string out = "\"";
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    append_character(out, c.code_point, ascii_only);
    text.remove_prefix(std::max<std::size_t>(1, c.length));
  }
  return out + "\"";
}

class Writer {
 public:
  Writer(Work& work, const JsonStyle& style) : work_(work), style_(style) {}

  std::string write(const Value& value) && {
    append(value);
    return std::move(out_);
  }

 private:
  void append(const Value& value) {
    work_.charge(step_cost);
    if (const std::string* text = text_of(value))
      out_.append(quote(work_, *text, style_.ascii_only));
    else if (is_none(value))
      out_.append("null");
    else if (const bool* boolean = get<bool>(value))
      out_.append(*boolean ? "true" : "false");
    else if (const double* real = get<double>(value))
      out_.append(std::isnan(*real)   ? "NaN"
                  : std::isinf(*real) ? (*real > 0 ? "Infinity" : "-Infinity")
                                      : print_real(*real));
    else if (const auto integer = integer_of(value))
      out_.append(std::to_string(*integer));
    else if (const List* list = list_of(value); list != nullptr && list->kind <= ListKind::tuple)
      append_list(*list);
    else if (const Dict* dict = dict_of(value))
      append_dict(*dict);
    else
      throw TemplateError(fmt::format("{} cannot be written as JSON", type_name(value)));
  }

  void append_list(const List& list) {
    if (list.items.empty()) {
      out_.append("[]");
      return;
    }
    out_.push_back('[');
    ++level_;
    for (std::size_t i = 0; i < list.items.size(); ++i) {
      begin_item(i == 0);
      append(list.items[i]);
    }
    --level_;
    end_items(']');
  }

  void append_dict(const Dict& dict) {
    if (dict.entries.empty()) {
      out_.append("{}");
      return;
    }
    std::vector<const std::pair<std::string, Value>*> entries;
    for (const auto& entry : dict.entries) entries.push_back(&entry);
    if (style_.sort_keys)
      std::sort(entries.begin(), entries.end(),
                [](const auto* a, const auto* b) { return a->first < b->first; });
    out_.push_back('{');
    ++level_;
    for (const auto* entry : entries) {
      begin_item(entry == entries.front());
      out_.append(quote(work_, entry->first, style_.ascii_only)).append(style_.key_separator);
      append(entry->second);
    }
    --level_;
    end_items('}');
  }

  void begin_item(bool is_first) {
    if (!is_first) out_.append(style_.item_separator);
    break_line();
  }
  void end_items(char close) {
    break_line();
    out_.push_back(close);
  }
  void break_line() {
    if (!style_.indent) return;
    work_.charge(style_.indent->size() * level_);
    out_.push_back('\n');
    for (std::size_t i = 0; i < level_; ++i) out_.append(*style_.indent);
  }

  Work& work_;
  const JsonStyle& style_;
  std::size_t level_ = 0;
  std::string out_;
};

}  // namespace

std::string to_json(Work& work, const Value& value, const JsonStyle& style) {
  return Writer(work, style).write(value);
}

}  // namespace sinkscope::jinja
