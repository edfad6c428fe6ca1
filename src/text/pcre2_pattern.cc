#include "text/pcre2_pattern.h"

#include <sinkscope/error.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <limits>

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
using MatchData = std::unique_ptr<pcre2_match_data, Free<pcre2_match_data_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Free<pcre2_match_context_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Free<pcre2_compile_context_free>>;
using JitStack = std::unique_ptr<pcre2_jit_stack, Free<pcre2_jit_stack_free>>;

std::string message_of(int code) {
  PCRE2_UCHAR buffer[256];
  pcre2_get_error_message(code, buffer, sizeof buffer);
  return reinterpret_cast<const char*>(buffer);
}

bool is_limit(int code) {
  return code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_HEAPLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
         code == PCRE2_ERROR_JIT_STACKLIMIT;
}

}  // namespace

struct Pcre2Pattern::Code {
  std::unique_ptr<pcre2_code, Free<pcre2_code_free>> code;
};

Pcre2Pattern::Pcre2Pattern(std::string_view pattern, std::uint32_t options, std::string_view shown,
                           std::string where)
    : where_(std::move(where)) {
  CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) throw std::bad_alloc();
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  int error = 0;
  PCRE2_SIZE position = 0;
  auto code = std::make_unique<Code>();
  code->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | options, &error, &position,
                                 context.get()));
  if (!code->code)
    throw Error("{}: the regular expression \"{}\" does not compile: {}", where_,
                replace_invalid_utf8(shown.substr(0, 200)), message_of(error));
  // Without the compiler (an unusual processor) matching falls back to the interpreter.
  pcre2_jit_compile(code->code.get(), PCRE2_JIT_COMPLETE);
  code_ = std::move(code);
}

Pcre2Pattern::~Pcre2Pattern() = default;

std::size_t Pcre2Pattern::groups() const {
  std::uint32_t count = 0;
  pcre2_pattern_info(code_->code.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return count;
}

struct Pcre2Pattern::Search::Scratch {
  MatchData match_data;
  MatchContext context;
  JitStack jit_stack;

  int match(const pcre2_code* code, std::string_view text, std::size_t start, std::uint32_t options) const {
    return pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), start,
                       PCRE2_NO_UTF_CHECK | options, match_data.get(), context.get());
  }
};

Pcre2Pattern::Search::Search(const Pcre2Pattern& pattern, std::string_view text)
    : pattern_(pattern), text_(text), scratch_(std::make_unique<Scratch>()) {
  scratch_->match_data.reset(pcre2_match_data_create_from_pattern(pattern.code_->code.get(), nullptr));
  scratch_->context.reset(pcre2_match_context_create(nullptr));
  if (!scratch_->match_data || !scratch_->context) throw std::bad_alloc();
  const std::uint64_t limit = base_match_limit + match_limit_per_byte * text.size();
  constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
  pcre2_set_match_limit(scratch_->context.get(), static_cast<std::uint32_t>(std::min(limit, largest)));
  pcre2_set_heap_limit(scratch_->context.get(), heap_limit_kib);
}

Pcre2Pattern::Search::~Search() = default;

bool Pcre2Pattern::Search::next(std::size_t start, std::uint32_t options) {
  const pcre2_code* const code = pattern_.code_->code.get();
  int count = scratch_->match(code, text_, start, options);
  if (count == PCRE2_ERROR_JIT_STACKLIMIT && !scratch_->jit_stack) {
    // Compiled code runs on 32 KiB of the machine stack unless told otherwise.
    scratch_->jit_stack.reset(pcre2_jit_stack_create(small_jit_stack, large_jit_stack, nullptr));
    if (!scratch_->jit_stack) throw std::bad_alloc();
    pcre2_jit_stack_assign(scratch_->context.get(), nullptr, scratch_->jit_stack.get());
    count = scratch_->match(code, text_, start, options);
  }
  if (count == PCRE2_ERROR_NOMATCH) return false;
  if (is_limit(count))
    throw Error(
        "{}: the regular expression backtracks without end on this text ({}); a pattern without nested "
        "repetitions would be right",
        pattern_.where_, message_of(count));
  if (count < 0)
    throw Error("{}: matching the regular expression failed: {}", pattern_.where_, message_of(count));
  if (offsets()[0] < start || offsets()[1] < offsets()[0])
    throw Error("{}: the regular expression moves its match backwards (\\K), which cannot split a text",
                pattern_.where_);
  return true;
}

std::span<const std::size_t> Pcre2Pattern::Search::offsets() const {
  static_assert(std::is_same_v<PCRE2_SIZE, std::size_t>);
  return {pcre2_get_ovector_pointer(scratch_->match_data.get()), 2 * (pattern_.groups() + 1)};
}

}  // namespace sinkscope
