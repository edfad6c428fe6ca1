// Tokenizer files carry patterns in Oniguruma's Ruby syntax; we run PCRE2. This rewrites the one into the
// other.
#pragma once

#include <string>
#include <string_view>

namespace sinkscope {

/// The PCRE2 pattern (for PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE) that matches what `pattern` matches in
/// Oniguruma. Where the two read the same text differently the pattern is rewritten: `\s \w \d \h \b` and
/// POSIX brackets (other sets of characters), `{n,m}+`, `{n}?` and `{,m}` (not possessive, not lazy, a
/// quantifier in Ruby), `(?m)` (dot matches newline), `(?i)` in mid-group (opens a group), script names, long
/// category names. Throws Error beginning with `where` for what has no equal: class intersections and nested
/// classes, extended mode, callouts, absent operators, unknown escapes.
std::string pcre2_from_oniguruma(std::string_view pattern, const std::string& where);

}  // namespace sinkscope
