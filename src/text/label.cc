#include "text/label.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <cstdint>

#include "text/unicode.h"

namespace sinkscope {
namespace {

// Characters that would show nothing, move other text about (direction marks) or have no glyph anywhere.
bool is_invisible(std::uint32_t c) {
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return true;
    default:
      return false;
  }
}

void append_printable(std::string& out, std::uint32_t c) {
  switch (c) {
    case ' ':
      out.append("\xE2\x90\xA3");
      return;
    case '\n':
      out.append("\\n");
      return;
    case '\t':
      out.append("\\t");
      return;
    case '\r':
      out.append("\\r");
      return;
    case '\\':
      out.append("\\\\");
      return;
    default:
      break;
  }
  if (c < 0x20 || c == 0x7F)
    out.append(fmt::format("\\x{:02X}", c));
  else if (is_invisible(c))
    out.append(fmt::format("\\u{:04X}", c));
  else
    append_utf8(out, c);
}

}  // namespace

std::string printable(std::string_view bytes) {
  std::string out;
  bool in_bytes = false;  // inside <F0 9F
  while (!bytes.empty()) {
    const DecodedChar c = decode_utf8(bytes);
    if (c.length == 0) {
      out.append(fmt::format("{}{:02X}", in_bytes ? " " : "<", static_cast<unsigned char>(bytes[0])));
      in_bytes = true;
      bytes.remove_prefix(1);
      continue;
    }
    if (in_bytes) out.push_back('>');
    in_bytes = false;
    append_printable(out, c.code_point);
    bytes.remove_prefix(c.length);
  }
  if (in_bytes) out.push_back('>');
  return out;
}

}  // namespace sinkscope
