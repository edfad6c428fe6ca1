#include "text/byte_level.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

#include "text/unicode.h"

namespace sinkscope {
namespace {

constexpr std::size_t alphabet_end = 0x100 + 68;  // first code point beyond the alphabet

bool stands_for_itself(unsigned byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Character {
  char bytes[2] = {};
  std::size_t size = 0;
};

struct Alphabet {
  std::array<Character, 256> characters;                // UTF-8 of each byte's character
  std::array<std::int16_t, alphabet_end> byte_of = {};  // -1: not in the alphabet

  Alphabet() {
    byte_of.fill(-1);
    std::uint32_t next = 0x100;
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::uint32_t code_point = stands_for_itself(byte) ? byte : next++;
      std::string utf8;
      append_utf8(utf8, code_point);
      characters[byte].size = utf8.copy(characters[byte].bytes, 2);
      byte_of[code_point] = static_cast<std::int16_t>(byte);
    }
  }
};

const Alphabet& alphabet() {
  static const Alphabet instance;
  return instance;
}

}  // namespace

void append_byte_alphabet(std::string& out, std::string_view text) {
  const auto& characters = alphabet().characters;
  for (const char c : text) {
    const Character& character = characters[static_cast<unsigned char>(c)];
    out.append(character.bytes, character.size);
  }
}

std::optional<std::string> bytes_from_alphabet(std::string_view token) {
  const auto& byte_of = alphabet().byte_of;
  std::string bytes;
  bytes.reserve(token.size());
  while (!token.empty()) {
    const DecodedChar c = decode_utf8(token);
    if (c.length == 0 || c.code_point >= byte_of.size() || byte_of[c.code_point] < 0) return std::nullopt;
    bytes.push_back(static_cast<char>(byte_of[c.code_point]));
    token.remove_prefix(c.length);
  }
  return bytes;
}

std::array<unsigned char, 256> byte_alphabet_order() {
  std::array<unsigned char, 256> bytes{};
  std::iota(bytes.begin(), bytes.end(), static_cast<unsigned char>(0));
  std::stable_partition(bytes.begin(), bytes.end(), stands_for_itself);
  return bytes;
}

}  // namespace sinkscope
