// The "decoder" of a tokenizer.json: how token strings become text again.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "text/json_fields.h"
#include "text/pattern.h"

namespace sinkscope {

struct DecodeByteLevel {};
struct DecodeByteFallback {};
struct DecodeFuse {};
/// Takes up to `start` and `stop` copies of a character off the ends of every token.
struct DecodeStrip {
  std::uint32_t character = ' ';
  std::size_t start = 0;
  std::size_t stop = 0;
};
struct DecodeMetaspace {
  std::uint32_t replacement = 0x2581;
  bool drop_first = true;  // no spaces at the start of the first token
};

using DecoderStep =
    std::variant<DecodeByteLevel, DecodeByteFallback, DecodeFuse, DecodeStrip, DecodeMetaspace, Replacement>;
using Decoder = std::vector<DecoderStep>;

/// Reads a decoder; Sequences are flattened. Throws Error naming a component that is not supported.
Decoder read_decoder(const JsonPlace& place);

/// The text of a list of token strings. The result is valid UTF-8: bytes that form no character give U+FFFD.
std::string decode_tokens(const Decoder& decoder, std::vector<std::string> tokens);

/// The bytes one token stands for in the middle of a text: byte tokens as their byte, the space mark as a
/// space, nothing stripped. May be part of a character.
std::string token_bytes(const Decoder& decoder, const std::string& token);

}  // namespace sinkscope
