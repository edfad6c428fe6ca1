// PCRE2 compiled just in time, with limits instead of blow-ups: what Regex and PythonRegex are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace sinkscope {

/// One compiled pattern, in PCRE2's own syntax, over UTF-8. Immutable: it may be used from many threads.
class Pcre2Pattern {
 public:
  /// `options` are PCRE2's beside UTF and UCP; `shown` is the pattern as its writer knows it. Throws Error,
  /// beginning with `where`, when it does not compile.
  Pcre2Pattern(std::string_view pattern, std::uint32_t options, std::string_view shown, std::string where);
  ~Pcre2Pattern();

  /// Groups beside the whole match.
  std::size_t groups() const;

  /// What one walk over a text owns: PCRE2's scratch space, and a larger stack once a match asked for it.
  class Search {
   public:
    /// text must be valid UTF-8 and outlive the search.
    Search(const Pcre2Pattern& pattern, std::string_view text);
    ~Search();
    Search(const Search&) = delete;
    Search& operator=(const Search&) = delete;

    /// First match at or after start; false if there is none. `options` are PCRE2's, for this match. Throws
    /// Error when it needs more backtracking than the limit (20 million steps and 16 more for each byte of
    /// text) or more than 256 MiB, and for a match that moves backwards.
    bool next(std::size_t start, std::uint32_t options = 0);

    /// Begin and end of the last match: [0], [1] of the whole, [2g], [2g+1] of group g. Those of a group
    /// that took no part are PCRE2_UNSET, the largest number.
    std::span<const std::size_t> offsets() const;

   private:
    struct Scratch;
    const Pcre2Pattern& pattern_;
    std::string_view text_;
    std::unique_ptr<Scratch> scratch_;
  };

 private:
  struct Code;
  std::unique_ptr<const Code> code_;
  std::string where_;
};

}  // namespace sinkscope
