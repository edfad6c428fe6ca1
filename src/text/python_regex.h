// Regular expressions as benchmark tasks write them: those of Python's module re.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

class Pcre2Pattern;

/// One compiled pattern. Immutable; copies share it. Python's syntax is taken as PCRE2 reads it, with `\Z`
/// and
/// `(?P...)` as Python has them; what PCRE2 alone has compiles too. Texts that are not valid UTF-8 are
/// searched with U+FFFD in the place of what is not. Searches throw Error when they backtrack without end.
class PythonRegex {
 public:
  /// Throws Error, beginning with `where`, when the pattern does not compile.
  PythonRegex(std::string_view pattern, std::string where);

  /// As re.findall: left to right, not overlapping, empty matches included. Each entry holds the groups of
  /// the match, "" for one that took no part, or the whole match where the pattern has no group.
  std::vector<std::vector<std::string>> find_all(std::string_view text) const;

  /// As re.sub with a plain text.
  std::string replace_all(std::string_view text, std::string_view by) const;

 private:
  std::shared_ptr<const Pcre2Pattern> compiled_;
};

}  // namespace sinkscope
