// Regular expressions of tokenizer files.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/span.h"

namespace sinkscope {

class Pcre2Pattern;

/// One compiled pattern. Immutable after construction, so it may be used from many threads at once; copies
/// share it.
class Regex {
 public:
  /// Compiles a pattern written in Oniguruma's Ruby syntax. `where` begins every error, also those of
  /// searches. Throws Error when the pattern does not compile.
  Regex(std::string_view pattern, std::string where);

  /// Appends the stretches of text to out, matched and not, in order and without gaps. Matches are found as
  /// Oniguruma's iterator does: left to right, not overlapping, an empty match right behind a match skipped.
  /// text must be valid UTF-8. offset is added to every position. Throws Error when a match needs more
  /// backtracking than the limit (20 million steps and 16 more for each byte of text) or more than 256 MiB.
  void find(std::string_view text, std::size_t offset, std::vector<MatchedSpan>& out) const;

 private:
  std::shared_ptr<const Pcre2Pattern> compiled_;
};

}  // namespace sinkscope
