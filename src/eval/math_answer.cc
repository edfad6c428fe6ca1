#include "eval/math_answer.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <utility>

namespace sinkscope {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

// A command is whole where no letter follows: \left is not the beginning of \leftarrow.
void replace_command(std::string& text, std::string_view command, std::string_view by) {
  for (std::size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
    const std::size_t end = at + command.size();
    if (end < text.size() && is_letter(text[end])) {
      at = end;
      continue;
    }
    text.replace(at, command.size(), by);
    at += by.size();
  }
}

// Behind the brace that closes the one at `open`; npos where none does.
std::size_t end_of_group(std::string_view text, std::size_t open) {
  int depth = 0;
  for (std::size_t at = open; at < text.size(); ++at) {
    if (text[at] == '\\') {
      ++at;
      continue;
    }
    if (text[at] == '{') ++depth;
    if (text[at] == '}' && --depth == 0) return at + 1;
  }
  return std::string_view::npos;
}

// \text{...}, \mathrm{...}: what is inside stays where it is the answer itself, and goes as a unit behind
// one.
void resolve_texts(std::string& text) {
  for (const std::string_view command :
       {"\\text{", "\\mbox{", "\\mathrm{", "\\textbf{", "\\mathbf{", "\\textit{"}) {
    for (std::size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
      const std::size_t open = at + command.size() - 1;
      const std::size_t end = end_of_group(text, open);
      if (end == std::string::npos) return;
      const bool is_unit =
          at > 0 && (is_digit(text[at - 1]) || text[at - 1] == ' ' || text[at - 1] == '}') &&
          std::any_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), is_digit);
      const std::string inside = is_unit ? "" : text.substr(open + 1, end - open - 2);
      text.replace(at, end - at, inside);
      at += inside.size();
    }
  }
}

// The argument at `at` gets braces: one character or one command where it has none. Its end, or npos.
std::size_t brace_argument(std::string& text, std::size_t at) {
  if (at >= text.size()) return std::string::npos;
  if (text[at] == '{') return end_of_group(text, at);
  std::size_t end = at + 1;
  if (text[at] == '\\')
    while (end < text.size() && is_letter(text[end])) ++end;
  text.insert(end, "}");
  text.insert(at, "{");
  return end + 2;
}

void brace_arguments(std::string& text, std::string_view command, int count) {
  for (std::size_t at = text.find(command); at != std::string::npos; at = text.find(command, at)) {
    at += command.size();
    if (at < text.size() && (is_letter(text[at]) || text[at] == '[')) continue;
    std::size_t next = at;
    for (int i = 0; i < count && next != std::string::npos; ++i) next = brace_argument(text, next);
  }
}

// 1,234,567 without its commas; lists such as 1,2 keep theirs.
void join_thousands(std::string& text) {
  for (std::size_t comma = text.find(','); comma != std::string::npos; comma = text.find(',', comma + 1)) {
    const auto digits_from = [&](std::size_t from) {
      std::size_t count = 0;
      while (from + count < text.size() && is_digit(text[from + count])) ++count;
      return count;
    };
    const bool after_digit = comma > 0 && is_digit(text[comma - 1]);
    if (after_digit && digits_from(comma + 1) == 3) text.erase(comma--, 1);
  }
}

bool is_whole(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  return !text.empty() && text.size() <= 18 && std::all_of(text.begin(), text.end(), is_digit);
}

std::string fraction(std::string_view above, std::string_view below) {
  return "\\frac{" + std::string(above) + "}{" + std::string(below) + "}";
}

// a/b of whole numbers.
void write_as_fraction(std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return;
  const std::string_view above = std::string_view(text).substr(0, slash);
  const std::string_view below = std::string_view(text).substr(slash + 1);
  if (is_whole(above) && is_whole(below)) text = fraction(above, below);
}

// A decimal number, its needless zeros gone: .50 -> 0.5, 3.0 -> 3, +7 -> 7, 007 -> 7. Others stay as they
// are.
void normalise_number(std::string& text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  const std::size_t point = std::min(rest.find('.'), rest.size());
  std::string_view whole = rest.substr(0, point);
  std::string_view part = point < rest.size() ? rest.substr(point + 1) : std::string_view();
  const bool is_number = !(whole.empty() && part.empty()) &&
                         std::all_of(whole.begin(), whole.end(), is_digit) &&
                         std::all_of(part.begin(), part.end(), is_digit);
  if (!is_number) return;
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  part = part.substr(0, part.find_last_not_of('0') + 1);
  std::string number = whole.empty() ? "0" : std::string(whole);
  if (!part.empty()) number += "." + std::string(part);
  text = negative && number != "0" ? "-" + number : number;
}

// \frac{1}{2} is 0.5 where the quotient of two small whole numbers has an end.
void divide_out(std::string& text) {
  constexpr std::string_view begin = "\\frac{";
  const bool negative = text.starts_with("-" + std::string(begin));
  const std::string_view rest = std::string_view(text).substr(negative ? 1 : 0);
  if (!rest.starts_with(begin)) return;
  const std::size_t middle = rest.find("}{");
  if (middle == std::string_view::npos || !rest.ends_with('}')) return;
  const std::string_view above = rest.substr(begin.size(), middle - begin.size());
  const std::string_view below = rest.substr(middle + 2, rest.size() - middle - 3);
  if (!is_whole(above) || !is_whole(below) || above.size() > 9 || below.size() > 9) return;
  std::int64_t numerator = 0, denominator = 0;
  std::from_chars(above.data(), above.data() + above.size(), numerator);
  std::from_chars(below.data(), below.data() + below.size(), denominator);
  if (denominator == 0) return;
  std::string out = ((numerator < 0) != (denominator < 0)) != negative && numerator != 0 ? "-" : "";
  numerator = std::abs(numerator);
  denominator = std::abs(denominator);
  out += std::to_string(numerator / denominator);
  numerator %= denominator;
  constexpr int most_digits = 30;
  if (numerator != 0) out += '.';
  for (int i = 0; i < most_digits && numerator != 0; ++i) {
    numerator *= 10;
    out += static_cast<char>('0' + numerator / denominator);
    numerator %= denominator;
  }
  if (numerator == 0) text = out;
}

// `x =` in front, where x is one letter or a short word.
void drop_left_side(std::string& text) {
  const std::size_t equals = text.find('=');
  constexpr std::size_t longest_name = 3;
  if (equals > longest_name || text.find('=', equals + 1) != std::string::npos) return;  // npos is above, too
  if (std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(equals), is_letter))
    text.erase(0, equals + 1);
}

}  // namespace

std::optional<std::string> last_boxed(std::string_view text) {
  std::optional<std::string> found;
  for (const std::string_view command : {"\\boxed", "\\fbox"}) {
    const std::size_t at = text.rfind(command);
    if (at == std::string_view::npos || found) continue;
    const std::size_t open = at + command.size();
    if (open < text.size() && text[open] == ' ')
      found = std::string(text.substr(open + 1, text.find('$', open) - open - 1));
    const std::size_t end =
        open < text.size() && text[open] == '{' ? end_of_group(text, open) : std::string_view::npos;
    if (end != std::string_view::npos) found = std::string(text.substr(open + 1, end - open - 2));
  }
  return found;
}

std::string normalised_math(std::string_view answer) {
  std::string text(answer);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
  for (const std::string_view gone :
       {"\\!", "\\$", "$", "\\%", "%", "\\ ", "\\,", "\\;", "\\:", "\\(", "\\)", "\\[", "\\]"})
    replace_all(text, gone, "");
  for (const std::string_view command : {"\\left", "\\right", "\\displaystyle", "\\limits"})
    replace_command(text, command, "");
  for (const auto& [command, by] : {std::pair{"\\dfrac", "\\frac"},
                                    {"\\tfrac", "\\frac"},
                                    {"\\cfrac", "\\frac"},
                                    {"\\neq", "\\ne"},
                                    {"\\leq", "\\le"},
                                    {"\\geq", "\\ge"}})
    replace_command(text, command, by);
  for (const std::string_view degrees : {"^{\\circ}", "^\\circ", "\\circ", "\\degree", "\xC2\xB0"})
    replace_all(text, degrees, "");
  resolve_texts(text);
  std::erase(text, ' ');
  brace_arguments(text, "\\frac", 2);
  brace_arguments(text, "\\sqrt", 1);
  drop_left_side(text);
  join_thousands(text);
  while (!text.empty() && (text.back() == '.' || text.back() == ',')) text.pop_back();
  write_as_fraction(text);
  divide_out(text);
  normalise_number(text);
  return text;
}

bool is_math_equal(std::string_view answer, std::string_view target) {
  return normalised_math(answer) == normalised_math(target);
}

}  // namespace sinkscope
