#include "text/regex.h"

#include <sinkscope/error.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <limits>

#include "text/oniguruma.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

constexpr std::uint64_t base_match_limit = 20'000'000;
constexpr std::uint64_t match_limit_per_byte = 16;
constexpr std::uint32_t heap_limit_kib = 256 * 1024;
constexpr std::size_t small_jit_stack = std::size_t{1} << 15;
constexpr std::size_t large_jit_stack = std::size_t{64} << 20;

template <auto free_function>
struct Free {
  template <typename T>
  void operator()(T* pointer) const {
    free_function(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Free<pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

// What one call of Regex::find owns: PCRE2's scratch space, and a larger stack once a match asked for it.
class Search {
 public:
  Search(const pcre2_code* code, std::string_view text, const std::string& where)
      : code_(code),
        text_(text),
        where_(where),
        match_data_(pcre2_match_data_create(1, nullptr)),
        context_(pcre2_match_context_create(nullptr)) {
    if (!match_data_ || !context_) throw std::bad_alloc();
    const std::uint64_t limit = base_match_limit + match_limit_per_byte * text.size();
    pcre2_set_match_limit(context_.get(), static_cast<std::uint32_t>(std::min<std::uint64_t>(
                                              limit, std::numeric_limits<std::uint32_t>::max())));
    pcre2_set_heap_limit(context_.get(), heap_limit_kib);
  }

  // First match at or after start; false if there is none.
  bool next(std::size_t start, Span& match) {
    const int count = run(start);
    if (count == PCRE2_ERROR_NOMATCH) return false;
    if (count == PCRE2_ERROR_MATCHLIMIT || count == PCRE2_ERROR_HEAPLIMIT ||
        count == PCRE2_ERROR_DEPTHLIMIT || count == PCRE2_ERROR_JIT_STACKLIMIT)
      throw Error(
          "{}: the regular expression backtracks without end on this text ({}); a pattern without nested "
          "repetitions "
          "would be right",
          where_, message_of(count));
    if (count < 0) throw Error("{}: matching the regular expression failed: {}", where_, message_of(count));
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match_data_.get());
    match = {offsets[0], offsets[1]};
    if (match.begin < start || match.end < match.begin)
      throw Error("{}: the regular expression moves its match backwards (\\K), which cannot split a text",
                  where_);
    return true;
  }

 private:
  int run(std::size_t start) {
    const auto call = [&] {
      return pcre2_match(code_, reinterpret_cast<PCRE2_SPTR>(text_.data()), text_.size(), start,
                         PCRE2_NO_UTF_CHECK, match_data_.get(), context_.get());
    };
    const int count = call();
    if (count != PCRE2_ERROR_JIT_STACKLIMIT || jit_stack_) return count;
    // Compiled code runs on 32 KiB of the machine stack unless told otherwise.
    jit_stack_.reset(pcre2_jit_stack_create(small_jit_stack, large_jit_stack, nullptr));
    if (!jit_stack_) throw std::bad_alloc();
    pcre2_jit_stack_assign(context_.get(), nullptr, jit_stack_.get());
    return call();
  }

  const pcre2_code* code_;
  std::string_view text_;
  const std::string& where_;
  MatchData match_data_;
  MatchContext context_;
  JitStack jit_stack_;
};

}  // namespace

struct Regex::Compiled {
  Code code;
  std::string where;
};

Regex::Regex(std::string_view pattern, std::string where) {
  const std::string translated = pcre2_from_oniguruma(pattern, where);
  CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE position = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
                          &position, context.get()));
  if (!code)
    throw Error("{}: the regular expression \"{}\" does not compile: {}", where,
                replace_invalid_utf8(pattern.substr(0, 200)), message_of(error));
  // Without the compiler (an unusual processor) matching falls back to the interpreter.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  compiled_ = std::make_shared<const Compiled>(Compiled{std::move(code), std::move(where)});
}

void Regex::find(std::string_view text, std::size_t offset, std::vector<MatchedSpan>& out) const {
  Search search(compiled_->code.get(), text, compiled_->where);
  std::size_t covered = 0;  // everything before is in out
  std::size_t start = 0;
  bool after_match = false;
  Span match;
  while (start <= text.size() && search.next(start, match)) {
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
