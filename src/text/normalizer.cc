#include "text/normalizer.h"

#include <sinkscope/error.h>
#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "text/unicode.h"

namespace sinkscope {
namespace {

bool is_composed(UnicodeForm form) { return form == UnicodeForm::nfc || form == UnicodeForm::nfkc; }
bool is_compatible(UnicodeForm form) { return form == UnicodeForm::nfkc || form == UnicodeForm::nfkd; }

// Text below U+0300 holds no combining mark, so it is in NFC; ASCII is in every form. (U+0300 begins with
// byte CC.)
bool is_already_normalized(UnicodeForm form, std::string_view text) {
  const unsigned char first_suspicious = form == UnicodeForm::nfc ? 0xCC : 0x80;
  return std::all_of(text.begin(), text.end(),
                     [=](char c) { return static_cast<unsigned char>(c) < first_suspicious; });
}

// The full decomposition of each character; combining marks not yet in canonical order.
std::vector<utf8proc_int32_t> decompose(std::string_view text, utf8proc_option_t options) {
  constexpr int longest = 32;  // the longest decomposition, of U+FDFA, has 18 characters
  std::vector<utf8proc_int32_t> out;
  out.reserve(text.size());
  utf8proc_int32_t buffer[longest];
  int last_bound_class = 0;
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c.code_point), buffer, longest,
                                               options, &last_bound_class);
    if (count < 0 || count > longest) throw Error("cannot normalize U+{:04X}", c.code_point);
    out.insert(out.end(), buffer, buffer + count);
    text.remove_prefix(c.length);
  }
  return out;
}

int combining_class(utf8proc_int32_t c) { return utf8proc_get_property(c)->combining_class; }

// Canonical order: runs of combining marks sorted by class. (utf8proc's own ordering is quadratic in the
// run.)
void order_marks(std::vector<utf8proc_int32_t>& text) {
  for (auto begin = text.begin(); begin != text.end();) {
    begin = std::find_if(begin, text.end(), [](auto c) { return combining_class(c) != 0; });
    const auto end = std::find_if(begin, text.end(), [](auto c) { return combining_class(c) == 0; });
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

std::string lowercase(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    // The one character whose lower case is two, whatever stands around it.
    if (c.code_point == 0x130)
      out.append("i\xCC\x87");
    else
      append_utf8(out,
                  static_cast<std::uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c.code_point))));
    text.remove_prefix(c.length);
  }
  return out;
}

std::string strip_ends(std::string_view text, const StripEnds& ends) {
  std::size_t begin = text.size(), end = 0;
  for (std::size_t at = 0; at < text.size();) {
    const DecodedChar c = decode_utf8(text.substr(at));
    if (!is_white_space(c.code_point)) {
      begin = std::min(begin, at);
      end = at + c.length;
    }
    at += c.length;
  }
  if (begin >= end) return ends.left || ends.right ? std::string() : std::string(text);
  if (!ends.left) begin = 0;
  if (!ends.right) end = text.size();
  return std::string(text.substr(begin, end - begin));
}

struct ApplyStep {
  std::string text;

  std::string operator()(UnicodeForm form) { return normalize_unicode(form, std::move(text)); }
  std::string operator()(const Lowercase&) { return lowercase(text); }
  std::string operator()(const Prepend& step) { return text.empty() ? std::move(text) : step.text + text; }
  std::string operator()(const Replacement& step) {
    return replace_pattern(step.pattern, text, step.content);
  }
  std::string operator()(const StripEnds& step) { return strip_ends(text, step); }
};

void read_steps(const JsonPlace& place, Normalizer& steps, int depth) {
  const std::string& type = component_type(place);
  if (type == "Sequence") {
    if (depth >= max_sequence_depth) throw Error("{}: Sequences nest more than {} deep", place.where, depth);
    const JsonPlace members = place.at("normalizers");
    for (std::size_t i = 0; i < members.array_size(); ++i) read_steps(members.element(i), steps, depth + 1);
  } else if (type == "NFC") {
    steps.emplace_back(UnicodeForm::nfc);
  } else if (type == "NFD") {
    steps.emplace_back(UnicodeForm::nfd);
  } else if (type == "NFKC") {
    steps.emplace_back(UnicodeForm::nfkc);
  } else if (type == "NFKD") {
    steps.emplace_back(UnicodeForm::nfkd);
  } else if (type == "Lowercase") {
    steps.emplace_back(Lowercase{});
  } else if (type == "Prepend") {
    steps.emplace_back(Prepend{place.at("prepend").as_string()});
  } else if (type == "Replace") {
    steps.emplace_back(read_replacement(place));
  } else if (type == "Strip") {
    steps.emplace_back(StripEnds{place.at("strip_left").as_bool(), place.at("strip_right").as_bool()});
  } else {
    refuse_component(place, "normalizer");
  }
}

}  // namespace

Normalizer read_normalizer(const JsonPlace& place) {
  Normalizer steps;
  read_steps(place, steps, 0);
  return steps;
}

std::string normalize(const Normalizer& normalizer, std::string text) {
  for (const NormalizerStep& step : normalizer) text = std::visit(ApplyStep{std::move(text)}, step);
  return text;
}

std::string normalize_unicode(UnicodeForm form, std::string text) {
  if (is_already_normalized(form, text)) return text;
  auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE |
                                                (is_compatible(form) ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> characters = decompose(text, options);
  order_marks(characters);
  auto count = static_cast<utf8proc_ssize_t>(characters.size());
  if (is_composed(form))
    count = utf8proc_normalize_utf32(characters.data(), count,
                                     static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  if (count < 0) throw Error("cannot normalize the text: {}", utf8proc_errmsg(count));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i)
    append_utf8(out, static_cast<std::uint32_t>(characters[static_cast<std::size_t>(i)]));
  return out;
}

}  // namespace sinkscope
