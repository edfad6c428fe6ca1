// UTF-8 and the few Unicode properties the tokenizer needs, as Rust and Python define them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace sinkscope {

/// A code point and the number of bytes it came from. length 0: the bytes at hand are no valid UTF-8.
struct DecodedChar {
  std::uint32_t code_point = 0;
  std::size_t length = 0;
};

/// First character of text. Surrogates, overlong forms and values above U+10FFFF are invalid.
DecodedChar decode_utf8(std::string_view text);

/// The last character of text, which must be valid UTF-8; empty for no text.
std::string_view last_character(std::string_view text);

/// Length in bytes of the longest prefix that could still become a valid character, at least 1: the maximal
/// subpart that one U+FFFD stands for (Unicode 3.9, as Python's and Rust's decoders do it). text must start
/// with invalid UTF-8.
std::size_t invalid_utf8_length(std::string_view text);

void append_utf8(std::string& out, std::uint32_t code_point);

bool is_valid_utf8(std::string_view text);

/// text with every maximal invalid part replaced by U+FFFD.
std::string replace_invalid_utf8(std::string_view text);

bool is_ascii(std::string_view text);

/// Unicode White_Space, Rust's char::is_whitespace and the `\s` of Oniguruma. U+180E, which PCRE2 counts in,
/// is not.
bool is_white_space(std::uint32_t code_point);

/// Python's str.isspace: White_Space and the four information separators U+001C..U+001F.
bool is_python_space(std::uint32_t code_point);

/// General category N*: Rust's char::is_numeric.
bool is_numeric(std::uint32_t code_point);

/// ASCII punctuation or general category P*.
bool is_punctuation(std::uint32_t code_point);

/// text without the Python white space at both ends (str.strip, Jinja's trim). text must be valid UTF-8.
std::string_view strip_python_space(std::string_view text);

}  // namespace sinkscope
