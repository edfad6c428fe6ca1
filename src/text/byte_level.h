// GPT-2's byte alphabet: every byte as one printable character, so that a vocabulary of strings can hold
// bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace sinkscope {

/// Appends each byte of text as its alphabet character: printable Latin-1 bytes as themselves, the other 68
/// as U+0100, U+0101, ... in byte order (space is U+0120).
void append_byte_alphabet(std::string& out, std::string_view text);

/// The bytes that a string of alphabet characters stands for; nothing if any other character is in it.
std::optional<std::string> bytes_from_alphabet(std::string_view token);

/// The bytes in the order of their characters' code points, in which trainers give them ids: those that stand
/// for themselves, then the other 68.
std::array<unsigned char, 256> byte_alphabet_order();

}  // namespace sinkscope
