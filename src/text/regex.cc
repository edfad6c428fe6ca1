#include "text/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#include "text/oniguruma.h"
#include "text/pcre2_pattern.h"
#include "text/unicode.h"

namespace sinkscope {

Regex::Regex(std::string_view pattern, std::string where) {
  const std::string translated = pcre2_from_oniguruma(pattern, where);
  compiled_ = std::make_shared<const Pcre2Pattern>(translated, PCRE2_MULTILINE, pattern, std::move(where));
}

void Regex::find(std::string_view text, std::size_t offset, std::vector<MatchedSpan>& out) const {
  Pcre2Pattern::Search search(*compiled_, text);
  std::size_t covered = 0;  // everything before is in out
  std::size_t start = 0;
  bool after_match = false;
  while (start <= text.size() && search.next(start)) {
    const Span match{search.offsets()[0], search.offsets()[1]};
    if (match.size() == 0 && after_match && match.begin == covered) {
      // An empty match right behind a match: one character on, or we would never move.
      if (start >= text.size()) break;
      start += std::max<std::size_t>(1, decode_utf8(text.substr(start)).length);
      continue;
    }
    if (covered < match.begin) out.push_back({{offset + covered, offset + match.begin}, false});
    out.push_back({{offset + match.begin, offset + match.end}, true});
    covered = start = match.end;
    after_match = true;
  }
  if (covered < text.size()) out.push_back({{offset + covered, offset + text.size()}, false});
}

}  // namespace sinkscope
