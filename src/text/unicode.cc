#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

namespace sinkscope {
namespace {

bool is_continuation(unsigned char byte) { return (byte & 0xC0U) == 0x80U; }

// Length announced by a first byte and the range its second byte must lie in (Unicode table 3-7); length 0 if
// none.
struct FirstByte {
  std::size_t length;
  unsigned char second_low, second_high;
};

FirstByte classify_first_byte(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

// Bytes at the start of text that fit the pattern its first byte announces.
std::size_t fitting_bytes(std::string_view text, const FirstByte& first) {
  const std::size_t limit = std::min(first.length, text.size());
  std::size_t count = limit == 0 ? 0 : 1;
  while (count < limit) {
    const auto byte = static_cast<unsigned char>(text[count]);
    const bool fits =
        count == 1 ? byte >= first.second_low && byte <= first.second_high : is_continuation(byte);
    if (!fits) break;
    ++count;
  }
  return count;
}

}  // namespace

DecodedChar decode_utf8(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text[0]);
  if (lead < 0x80) return {lead, 1};
  const FirstByte first = classify_first_byte(lead);
  if (first.length == 0 || fitting_bytes(text, first) != first.length) return {};
  std::uint32_t code_point = lead & (0xFFU >> (first.length + 1));
  for (std::size_t i = 1; i < first.length; ++i)
    code_point = (code_point << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
  return {code_point, first.length};
}

std::string_view last_character(std::string_view text) {
  std::size_t start = text.size();
  while (start > 0) {
    --start;
    if ((static_cast<unsigned char>(text[start]) & 0xC0U) != 0x80U) break;
  }
  return text.substr(start);
}

std::size_t invalid_utf8_length(std::string_view text) {
  if (text.empty()) return 0;
  return std::max<std::size_t>(1,
                               fitting_bytes(text, classify_first_byte(static_cast<unsigned char>(text[0]))));
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    // Eight bytes of ASCII at a stroke.
    std::uint64_t block = 0;
    if (text.size() >= sizeof block) {
      std::memcpy(&block, text.data(), sizeof block);
      if ((block & 0x8080808080808080ULL) == 0) {
        text.remove_prefix(sizeof block);
        continue;
      }
    }
    const DecodedChar c = decode_utf8(text);
    if (c.length == 0) return false;
    text.remove_prefix(c.length);
  }
  return true;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    if (c.length > 0) {
      out.append(text.substr(0, c.length));
      text.remove_prefix(c.length);
    } else {
      out.append("\xEF\xBF\xBD");
      text.remove_prefix(invalid_utf8_length(text));
    }
  }
  return out;
}

bool is_white_space(std::uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_python_space(std::uint32_t c) { return is_white_space(c) || (c >= 0x1C && c <= 0x1F); }

bool is_numeric(std::uint32_t code_point) {
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
  return category == UTF8PROC_CATEGORY_ND || category == UTF8PROC_CATEGORY_NL ||
         category == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(std::uint32_t c) {
  const bool ascii = (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) ||
                     (c >= 0x7B && c <= 0x7E);
  const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
  return ascii || (category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO);
}

std::string_view strip_python_space(std::string_view text) {
  while (!text.empty()) {
    const DecodedChar c = decode_utf8(text);
    if (c.length == 0 || !is_python_space(c.code_point)) break;
    text.remove_prefix(c.length);
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && is_continuation(static_cast<unsigned char>(text[start]))) --start;
    const DecodedChar c = decode_utf8(text.substr(start));
    if (c.length == 0 || !is_python_space(c.code_point)) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

}  // namespace sinkscope
