#include "text/oniguruma.h"

#include <sinkscope/error.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "text/unicode.h"

namespace sinkscope {
namespace {

// A set of characters in both of its spellings inside brackets: its members and everything else. An empty
// complement cannot be written as a list.
struct CharSet {
  std::string_view members;
  std::string_view complement;
};

constexpr CharSet white_space_set{
    R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})",
    R"(\x{0}-\x{8}\x{E}-\x{1F}!-\x{84}\x{86}-\x{9F}\x{A1}-\x{167F}\x{1681}-\x{1FFF}\x{200B}-\x{2027})"
    R"(\x{202A}-\x{202E}\x{2030}-\x{205E}\x{2060}-\x{2FFF}\x{3001}-\x{10FFFF})"};
// Outside brackets `\w` also takes the superscripts and fractions of Latin-1: there Oniguruma looks into a
// table of the first 256 characters, which counts them in.
constexpr CharSet lone_word_set{R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{B2}\x{B3}\x{B9}\x{BC}-\x{BE})", ""};
constexpr CharSet word_set{R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})", ""};
constexpr CharSet digit_set{R"(\p{Nd})", R"(\P{Nd})"};
constexpr CharSet hex_set{"0-9A-Fa-f", R"(\x{0}-/:-@G-`g-\x{10FFFF})"};

struct NamedSet {
  std::string_view name;
  CharSet set;
};

// POSIX brackets as Oniguruma defines them for Unicode text; also valid as property names there.
constexpr std::array posix_sets{NamedSet{"alnum", {R"(\p{Alphabetic}\p{Nd})", ""}},
                                NamedSet{"alpha", {R"(\p{Alphabetic})", R"(\P{Alphabetic})"}},
                                NamedSet{"digit", digit_set},
                                NamedSet{"lower", {R"(\p{Lowercase})", R"(\P{Lowercase})"}},
                                NamedSet{"punct", {R"(\p{P}\p{S})", ""}},
                                NamedSet{"space", white_space_set},
                                NamedSet{"upper", {R"(\p{Uppercase})", R"(\P{Uppercase})"}},
                                NamedSet{"word", word_set},
                                NamedSet{"xdigit", hex_set}};

// PCRE2 10.42 knows general categories by their short names only.
constexpr std::array<std::pair<std::string_view, std::string_view>, 39> long_categories{{
    {"other", "C"},
    {"control", "Cc"},
    {"format", "Cf"},
    {"unassigned", "Cn"},
    {"privateuse", "Co"},
    {"surrogate", "Cs"},
    {"letter", "L"},
    {"lowercaseletter", "Ll"},
    {"modifierletter", "Lm"},
    {"otherletter", "Lo"},
    {"titlecaseletter", "Lt"},
    {"uppercaseletter", "Lu"},
    {"mark", "M"},
    {"combiningmark", "M"},
    {"spacingmark", "Mc"},
    {"enclosingmark", "Me"},
    {"nonspacingmark", "Mn"},
    {"number", "N"},
    {"decimalnumber", "Nd"},
    {"letternumber", "Nl"},
    {"othernumber", "No"},
    {"punctuation", "P"},
    {"punct", "P"},
    {"connectorpunctuation", "Pc"},
    {"dashpunctuation", "Pd"},
    {"closepunctuation", "Pe"},
    {"finalpunctuation", "Pf"},
    {"initialpunctuation", "Pi"},
    {"otherpunctuation", "Po"},
    {"openpunctuation", "Ps"},
    {"symbol", "S"},
    {"currencysymbol", "Sc"},
    {"modifiersymbol", "Sk"},
    {"mathsymbol", "Sm"},
    {"othersymbol", "So"},
    {"separator", "Z"},
    {"lineseparator", "Zl"},
    {"paragraphseparator", "Zp"},
    {"spaceseparator", "Zs"},
}};

bool compiles(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE position = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                   PCRE2_UTF | PCRE2_UCP, &error, &position, nullptr);
  pcre2_code_free(code);
  return code != nullptr;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Property names ignore case, spaces, hyphens and underscores.
std::string fold_property_name(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    folded.push_back(c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c);
  }
  return folded;
}

class Translator {
 public:
  Translator(std::string_view pattern, const std::string& where) : pattern_(pattern), where_(where) {}

  std::string translate() {
    groups_.push_back({});
    while (position_ < pattern_.size()) translate_item();
    // An unclosed parenthesis is left for PCRE2 to report.
    close_options(groups_.front());
    return std::move(out_);
  }

 private:
  // An open parenthesis: where its text begins in out_, and how many `(?i:` of isolated options end with it.
  struct Group {
    std::size_t start = 0;
    int isolated_options = 0;
  };

  [[noreturn]] void refuse(std::string_view what) const {
    throw Error("{}: the regular expression uses {}, which is not supported", where_, what);
  }

  char peek(std::size_t ahead = 0) const {
    return position_ + ahead < pattern_.size() ? pattern_[position_ + ahead] : '\0';
  }
  bool at(std::string_view text) const { return pattern_.substr(position_, text.size()) == text; }

  void close_options(Group& group) {
    out_.append(static_cast<std::size_t>(group.isolated_options), ')');
    group.isolated_options = 0;
  }

  void translate_item() {
    switch (peek()) {
      case '(':
        return open_group();
      case ')':
        return close_group();
      case '[':
        return begin_atom(), translate_class();
      case '\\':
        return begin_atom(), translate_escape();
      case '{':
        return translate_brace();
      case '*':
      case '+':
      case '?':
      case '|':
        out_.push_back(pattern_[position_++]);
        return;
      default:
        begin_atom();
        // All bytes of one character: a quantifier behind it must repeat it whole.
        do out_.push_back(pattern_[position_++]);
        while (position_ < pattern_.size() && (static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U);
    }
  }

  void begin_atom() { atom_start_ = out_.size(); }

  void open_group() {
    if (at("(*")) refuse("a callout (*...)");
    if (at("(?#")) {
      const std::size_t end = pattern_.find(')', position_);
      position_ = end == std::string_view::npos ? pattern_.size() : end + 1;
      return;
    }
    const std::size_t start = out_.size();
    if (at("(?") && translate_options()) return;
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?<", "(?'"}) {
      if (!at(opening)) continue;
      out_.append(opening);
      position_ += opening.size();
      groups_.push_back({start, 0});
      return;
    }
    if (at("(?"))
      refuse(fmt::format("the group \"{}...)\"", replace_invalid_utf8(pattern_.substr(position_, 3))));
    out_.push_back(pattern_[position_++]);
    groups_.push_back({start, 0});
  }

  // `(?imx-imx)` and `(?imx-imx:`. Alone it opens a group to the end of the enclosing one, alternatives
  // included.
  bool translate_options() {
    std::size_t end = position_ + 2;
    std::string options = "(?";
    for (; end < pattern_.size() && (is_letter(pattern_[end]) || pattern_[end] == '-'); ++end) {
      const char c = pattern_[end];
      if (c == 'i' || c == '-')
        options.push_back(c);
      else if (c == 'm')
        options.push_back('s');  // Ruby's m: the dot matches newlines too
      else
        refuse(fmt::format("the option (?{})", c));
    }
    if (end == position_ + 2 || end >= pattern_.size() || (pattern_[end] != ':' && pattern_[end] != ')'))
      return false;
    const std::size_t start = out_.size();
    out_.append(options).push_back(':');
    if (pattern_[end] == ':')
      groups_.push_back({start, 0});
    else
      ++groups_.back().isolated_options;
    position_ = end + 1;
    return true;
  }

  void close_group() {
    if (groups_.size() > 1) {
      close_options(groups_.back());
      atom_start_ = groups_.back().start;
      groups_.pop_back();
    }
    out_.push_back(pattern_[position_++]);
  }

  // A quantifier in braces, or a plain brace. Ruby's `{n,m}+` and `{n}?` repeat the repetition.
  void translate_brace() {
    std::size_t end = position_ + 1;
    std::string low, high;
    while (end < pattern_.size() && is_digit(pattern_[end])) low.push_back(pattern_[end++]);
    const bool comma = end < pattern_.size() && pattern_[end] == ',';
    if (comma) ++end;
    while (comma && end < pattern_.size() && is_digit(pattern_[end])) high.push_back(pattern_[end++]);
    if (end >= pattern_.size() || pattern_[end] != '}' || (low.empty() && high.empty())) {
      begin_atom();
      out_.append("\\{");
      ++position_;
      return;
    }
    position_ = end + 1;
    const std::string bounds = (low.empty() ? "0" : low) + (comma ? "," + high : "");
    const bool repeats_again = peek() == '+' || (peek() == '?' && !comma);
    if (repeats_again) out_.insert(atom_start_, "(?:");
    out_.append("{").append(bounds).append("}");
    if (repeats_again) out_.push_back(')');
    if (repeats_again || peek() == '?') out_.push_back(pattern_[position_++]);
  }

  void append_set(const CharSet& set, bool negated) {
    out_.append(negated ? "[^" : "[").append(set.members).push_back(']');
  }

  void append_set_in_class(const CharSet& set, bool negated, std::string_view name) {
    if (negated && set.complement.empty()) refuse(fmt::format("the negated set {} inside brackets", name));
    out_.append(negated ? set.complement : set.members);
  }

  void translate_escape() {
    const char c = peek(1);
    if (const auto set = escaped_set(c)) {
      append_set(c == 'w' || c == 'W' ? lone_word_set : *set, c == 'S' || c == 'W' || c == 'D' || c == 'H');
      position_ += 2;
    } else if (c == 'b' || c == 'B') {
      const std::string word = "[" + std::string(lone_word_set.members) + "]";
      const bool boundary = c == 'b';
      out_.append("(?:(?<=" + word + ")(?" + (boundary ? "!" : "=") + word + ")|(?<!" + word + ")(?" +
                  (boundary ? "=" : "!") + word + "))");
      position_ += 2;
    } else if (c == 'p' || c == 'P') {
      translate_property(false);
    } else if (c == 'R' || c == 'X' || c == 'A' || c == 'z' || c == 'Z' || c == 'G' || c == 'k' || c == 'N' ||
               c == 'K' || (c >= '1' && c <= '9')) {
      out_.append(pattern_.substr(position_, 2));
      position_ += 2;
    } else {
      translate_character_escape();
    }
  }

  // Escapes that stand for one character, inside and outside brackets.
  void translate_character_escape() {
    const char c = peek(1);
    if (c == '\0' && position_ + 1 >= pattern_.size()) refuse("a backslash at its end");
    if (c == 'u') {
      const std::string_view digits = pattern_.substr(position_ + 2, 4);
      if (digits.size() != 4 || digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
        refuse("\\u without four hexadecimal digits");
      out_.append("\\x{").append(digits).append("}");
      position_ += 6;
    } else if (c == 'x' && peek(2) == '{') {
      const std::size_t end = pattern_.find('}', position_);
      if (end == std::string_view::npos) refuse("\\x{ without its closing brace");
      out_.append(pattern_.substr(position_, end + 1 - position_));
      position_ = end + 1;
    } else if (c == 'v') {
      out_.append("\\x0B");
      position_ += 2;
    } else if (is_letter(c) && std::string_view("nrtfaex").find(c) == std::string_view::npos) {
      refuse(fmt::format("the escape \\{}", c));
    } else {
      out_.push_back(pattern_[position_++]);
      // The escaped character whole, it may be several bytes long.
      do out_.push_back(pattern_[position_++]);
      while (position_ < pattern_.size() && (static_cast<unsigned char>(peek()) & 0xC0U) == 0x80U);
    }
  }

  static std::optional<CharSet> escaped_set(char c) {
    switch (c) {
      case 's':
      case 'S':
        return white_space_set;
      case 'w':
      case 'W':
        return word_set;
      case 'd':
      case 'D':
        return digit_set;
      case 'h':
      case 'H':
        return hex_set;
      default:
        return std::nullopt;
    }
  }

  // \p{Name}, \p{^Name}, \P{Name}.
  void translate_property(bool in_class) {
    bool negated = peek(1) == 'P';
    const std::size_t end = pattern_.find('}', position_);
    if (peek(2) != '{' || end == std::string_view::npos) refuse("a property without braces");
    std::string_view name = pattern_.substr(position_ + 3, end - position_ - 3);
    if (!name.empty() && name[0] == '^') {
      negated = !negated;
      name.remove_prefix(1);
    }
    const std::string folded = fold_property_name(name);
    position_ = end + 1;
    for (const NamedSet& posix : posix_sets) {
      if (posix.name != folded || folded == "punct") continue;  // there P alone
      if (in_class)
        append_set_in_class(posix.set, negated, name);
      else
        append_set(folded == "word" ? lone_word_set : posix.set, negated);
      return;
    }
    out_.append(negated ? "\\P{" : "\\p{").append(property_name(name, folded)).append("}");
  }

  static std::string property_name(std::string_view name, const std::string& folded) {
    for (const auto& [long_name, short_name] : long_categories)
      if (long_name == folded) return std::string(short_name);
    // PCRE2 takes a bare script name for the script extensions.
    const std::string script = "sc:" + std::string(name);
    if (name.size() > 2 && compiles("\\p{" + script + "}")) return script;
    return std::string(name);
  }

  void translate_class() {
    out_.push_back(pattern_[position_++]);
    if (peek() == '^') out_.push_back(pattern_[position_++]);
    if (peek() == ']') {
      out_.append("\\]");
      ++position_;
    }
    while (position_ < pattern_.size() && peek() != ']') translate_class_item();
    if (position_ < pattern_.size()) out_.push_back(pattern_[position_++]);
  }

  void translate_class_item() {
    const char c = peek();
    if (at("&&")) refuse("a class intersection (&&)");
    if (at("[:")) return translate_posix_bracket();
    if (c == '[') refuse("a class inside a class");
    if (c != '\\') {
      out_.push_back(pattern_[position_++]);
      return;
    }
    const char escaped = peek(1);
    if (const auto set = escaped_set(escaped)) {
      append_set_in_class(*set, escaped == 'S' || escaped == 'W' || escaped == 'D' || escaped == 'H',
                          pattern_.substr(position_, 2));
      position_ += 2;
    } else if (escaped == 'p' || escaped == 'P') {
      translate_property(true);
    } else if (escaped == 'b') {
      out_.append("\\x08");
      position_ += 2;
    } else {
      translate_character_escape();
    }
  }

  void translate_posix_bracket() {
    const std::size_t end = pattern_.find(":]", position_);
    if (end == std::string_view::npos) refuse("\"[:\" without \":]\"");
    std::string_view name = pattern_.substr(position_ + 2, end - position_ - 2);
    const bool negated = !name.empty() && name[0] == '^';
    if (negated) name.remove_prefix(1);
    for (const NamedSet& posix : posix_sets) {
      if (posix.name != name) continue;
      append_set_in_class(posix.set, negated, name);
      position_ = end + 2;
      return;
    }
    refuse(fmt::format("the bracket [:{}:]", replace_invalid_utf8(name.substr(0, 40))));
  }

  std::string_view pattern_;
  const std::string& where_;
  std::string out_;
  std::size_t position_ = 0;
  std::size_t atom_start_ = 0;  // where the last atom begins in out_: what a quantifier repeats
  std::vector<Group> groups_;   // [0] is the pattern itself
};

}  // namespace

std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where) {
  constexpr std::size_t max_pattern = std::size_t{1} << 16;
  if (pattern.size() > max_pattern)
    throw Error("{}: the regular expression is {} bytes long; at most {} are taken", where, pattern.size(),
                max_pattern);
  if (!is_valid_utf8(pattern)) throw Error("{}: the regular expression is not valid UTF-8", where);
  return Translator(pattern, where).translate();
}

}  // namespace sinkscope
