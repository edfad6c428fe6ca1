#include "text/jinja/python_text.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <optional>

#include "text/find_text.h"
#include "text/jinja/work.h"
#include "text/unicode.h"

namespace sinkscope::jinja {
namespace {

constexpr std::uint32_t sharp_s = 0xDF, dotted_capital_i = 0x130, capital_sigma = 0x3A3, final_sigma = 0x3C2;

std::size_t length_at(std::string_view text) { return std::max<std::size_t>(1, decode_utf8(text).length); }

template <typename IsTaken>
std::string_view strip_while(std::string_view text, Ends ends, const IsTaken& is_taken) {
  while (ends != Ends::right && !text.empty()) {
    const std::string_view first = text.substr(0, length_at(text));
    if (!is_taken(first)) break;
    text.remove_prefix(first.size());
  }
  while (ends != Ends::left && !text.empty()) {
    const std::string_view last = last_character(text);
    if (!is_taken(last)) break;
    text.remove_suffix(last.size());
  }
  return text;
}

bool is_space(std::string_view character) { return is_python_space(decode_utf8(character).code_point); }

// Characters whose upper case is several characters (Unicode's SpecialCasing); of them only the sharp s is
// known here.
bool has_long_upper_case(std::uint32_t c) {
  return c == 0x149 || c == 0x1F0 || c == 0x390 || c == 0x3B0 || c == 0x587 || (c >= 0x1E96 && c <= 0x1E9A) ||
         (c >= 0x1F50 && c <= 0x1F56) || (c >= 0x1F80 && c <= 0x1FFC) || (c >= 0xFB00 && c <= 0xFB17);
}

void append_upper(std::string& out, std::uint32_t c) {
  if (has_long_upper_case(c))
    throw TemplateError(fmt::format("the upper case of U+{:04X} is not supported", c));
  if (c == sharp_s)
    out.append("SS");
  else
    append_utf8(out, static_cast<std::uint32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c))));
}

void append_title(std::string& out, std::uint32_t c) {
  if (has_long_upper_case(c))
    throw TemplateError(fmt::format("the title case of U+{:04X} is not supported", c));
  if (c == sharp_s)
    out.append("Ss");
  else
    append_utf8(out, static_cast<std::uint32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c))));
}

bool is_letter(std::uint32_t c) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

// A sigma that ends a word has a form of its own. `before`: whether a letter stands before it.
void append_lower(std::string& out, std::uint32_t c, bool before, std::string_view rest) {
  if (c == dotted_capital_i)
    out.append("i\xCC\x87");
  else if (c == capital_sigma && before && !is_letter(decode_utf8(rest).code_point))
    append_utf8(out, final_sigma);
  else
    append_utf8(out, static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

enum class Case { lower, upper, title };

// Rewrites text character by character, in the case that case_behind(the character before, none: the first)
// says.
template <typename CaseBehind>
std::string change_case(std::string_view text, const CaseBehind& case_behind) {
  std::string out;
  out.reserve(text.size());
  std::optional<std::uint32_t> before;
  while (!text.empty()) {
    const std::uint32_t c = decode_utf8(text).code_point;
    text.remove_prefix(length_at(text));
    switch (case_behind(before)) {
      case Case::upper:
        append_upper(out, c);
        break;
      case Case::title:
        append_title(out, c);
        break;
      case Case::lower:
        append_lower(out, c, before && is_letter(*before), text);
        break;
    }
    before = c;
  }
  return out;
}

// Length of the line break at the start of text; 0: none.
std::size_t line_break_at(std::string_view text) {
  const DecodedChar c = decode_utf8(text);
  if (c.code_point == '\r') return text.substr(0, 2) == "\r\n" ? 2 : 1;
  const bool is_break = (c.code_point >= 0x0A && c.code_point <= 0x0C) ||
                        (c.code_point >= 0x1C && c.code_point <= 0x1E) || c.code_point == 0x85 ||
                        c.code_point == 0x2028 || c.code_point == 0x2029;
  return is_break ? c.length : 0;
}

}  // namespace

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    out.push_back(text.substr(0, length_at(text)));
    text.remove_prefix(out.back().size());
  }
  return out;
}

std::string_view strip_space(std::string_view text, Ends ends) { return strip_while(text, ends, is_space); }

std::string_view strip_characters(std::string_view text, std::string_view characters, Ends ends) {
  // Bounded by the caller's charge for both: a set of a few characters is searched as it is.
  return strip_while(text, ends,
                     [&](std::string_view c) { return characters.find(c) != std::string_view::npos; });
}

std::vector<std::string_view> split_at(std::string_view text, std::string_view separator, std::int64_t most) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  while (most < 0 || static_cast<std::int64_t>(parts.size()) < most) {
    const std::size_t at = find_text(text, separator, begin);
    if (at == std::string_view::npos) break;
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split_at_from_right(std::string_view text, std::string_view separator,
                                                  std::int64_t most) {
  // The parts from the left mirrored: separators may overlap, so the search itself is mirrored too.
  const std::string mirrored_text(text.rbegin(), text.rend()),
      mirrored_separator(separator.rbegin(), separator.rend());
  std::vector<std::string_view> parts;
  std::size_t end = text.size();
  for (const std::string_view part : split_at(mirrored_text, mirrored_separator, most)) {
    parts.push_back(text.substr(end - part.size(), part.size()));
    end -= std::min(end, part.size() + separator.size());
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string_view> split_at_space(std::string_view text, std::int64_t most) {
  std::vector<std::string_view> parts;
  text = strip_space(text, Ends::left);
  while (!text.empty()) {
    if (most >= 0 && static_cast<std::int64_t>(parts.size()) >= most) {
      parts.push_back(text);
      break;
    }
    std::size_t end = 0;
    while (end < text.size() && !is_space(text.substr(end, length_at(text.substr(end)))))
      end += length_at(text.substr(end));
    parts.push_back(text.substr(0, end));
    text = strip_space(text.substr(end), Ends::left);
  }
  return parts;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    const std::size_t length = line_break_at(text.substr(at));
    if (length == 0) {
      at += length_at(text.substr(at));
      continue;
    }
    lines.push_back(text.substr(begin, at - begin));
    begin = at += length;
  }
  if (begin < text.size()) lines.push_back(text.substr(begin));
  return lines;
}

std::string replace_text(std::string_view text, std::string_view from, std::string_view to,
                         std::int64_t most) {
  std::string out;
  if (!from.empty()) {
    bool first = true;
    for (const std::string_view part : split_at(text, from, most)) {
      if (!first) out.append(to);
      out.append(part);
      first = false;
    }
    return out;
  }
  std::int64_t done = 0;
  for (const std::string_view c : characters_of(text)) {
    if (most < 0 || done++ < most) out.append(to);
    out.append(c);
  }
  if (most < 0 || done < most) out.append(to);
  return out;
}

std::string to_upper(std::string_view text) {
  return change_case(text, [](auto) { return Case::upper; });
}

std::string to_lower(std::string_view text) {
  return change_case(text, [](auto) { return Case::lower; });
}

std::string capitalize(std::string_view text) {
  return change_case(text, [](auto before) { return before ? Case::lower : Case::title; });
}

std::string title_words(std::string_view text) {
  return change_case(text,
                     [](auto before) { return before && is_letter(*before) ? Case::lower : Case::title; });
}

std::string title_filter(std::string_view text) {
  constexpr std::string_view openings = "-({[<";
  return change_case(text, [=](auto before) {
    const bool begins_word =
        !before || is_python_space(*before) ||
        (*before < 0x80 && openings.find(static_cast<char>(*before)) != std::string_view::npos);
    return begins_word ? Case::upper : Case::lower;
  });
}

}  // namespace sinkscope::jinja
