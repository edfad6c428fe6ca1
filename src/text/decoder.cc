#include "text/decoder.h"

#include <sinkscope/error.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "text/byte_level.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace sinkscope {
namespace {

constexpr const char* replacement_character = "\xEF\xBF\xBD";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// The byte of a token such as <0xF0>.
std::optional<char> byte_of(const std::string& token) {
  if (token.size() != 6 || token.compare(0, 3, "<0x") != 0 || token[5] != '>') return std::nullopt;
  const int high = hex_value(token[3]), low = hex_value(token[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

// Runs of byte tokens become text, or as many U+FFFD as there are bytes.
std::vector<std::string> decode_byte_tokens(const std::vector<std::string>& tokens) {
  std::vector<std::string> out;
  std::string bytes;
  const auto flush = [&] {
    if (is_valid_utf8(bytes)) {
      if (!bytes.empty()) out.push_back(bytes);
    } else {
      out.insert(out.end(), bytes.size(), replacement_character);
    }
    bytes.clear();
  };
  for (const std::string& token : tokens) {
    if (const auto byte = byte_of(token)) {
      bytes.push_back(*byte);
    } else {
      flush();
      out.push_back(token);
    }
  }
  flush();
  return out;
}

std::string strip_token(const std::string& token, const DecodeStrip& step) {
  std::string unit;
  append_utf8(unit, step.character);
  std::string_view rest = token;
  for (std::size_t i = 0; i < step.start && rest.substr(0, unit.size()) == unit; ++i)
    rest.remove_prefix(unit.size());
  for (std::size_t i = 0;
       i < step.stop && rest.size() >= unit.size() && rest.substr(rest.size() - unit.size()) == unit; ++i)
    rest.remove_suffix(unit.size());
  return std::string(rest);
}

std::string decode_metaspace(const std::string& token, const DecodeMetaspace& step, bool is_first) {
  std::string unit;
  append_utf8(unit, step.replacement);
  return replace_pattern(Pattern(unit), token, is_first && step.drop_first ? "" : " ");
}

std::string concatenate(const std::vector<std::string>& tokens) {
  std::string out;
  for (const std::string& token : tokens) out.append(token);
  return out;
}

// Bytes may run over the borders of tokens, so they are put together first.
std::string decode_byte_level(const std::vector<std::string>& tokens) {
  std::string bytes;
  for (const std::string& token : tokens) bytes.append(bytes_from_alphabet(token).value_or(token));
  return replace_invalid_utf8(bytes);
}

struct ApplyStep {
  std::vector<std::string>& tokens;

  void operator()(const DecodeByteLevel&) const { tokens = {decode_byte_level(tokens)}; }
  void operator()(const DecodeByteFallback&) const { tokens = decode_byte_tokens(tokens); }
  void operator()(const DecodeFuse&) const { tokens = {concatenate(tokens)}; }
  void operator()(const DecodeStrip& step) const {
    for (std::string& token : tokens) token = strip_token(token, step);
  }
  void operator()(const DecodeMetaspace& step) const {
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = decode_metaspace(tokens[i], step, i == 0);
  }
  void operator()(const Replacement& step) const {
    for (std::string& token : tokens) token = replace_pattern(step.pattern, token, step.content);
  }
};

// Of one token, without what depends on its neighbours or takes spaces off the ends of the text.
struct TokenBytes {
  std::string token;

  std::string operator()(const DecodeByteLevel&) { return bytes_from_alphabet(token).value_or(token); }
  std::string operator()(const DecodeByteFallback&) {
    const auto byte = byte_of(token);
    return byte ? std::string(1, *byte) : token;
  }
  std::string operator()(const DecodeFuse&) { return token; }
  std::string operator()(const DecodeStrip&) { return token; }
  std::string operator()(const DecodeMetaspace& step) { return decode_metaspace(token, step, false); }
  std::string operator()(const Replacement& step) {
    // A byte token's byte, decoded by an earlier step, need not be text.
    return is_valid_utf8(token) ? replace_pattern(step.pattern, token, step.content) : token;
  }
};

DecodeStrip read_strip(const JsonPlace& place) {
  constexpr std::int64_t most = 1 << 20;
  return {place.at("content").as_character(), static_cast<std::size_t>(place.at("start").as_integer(0, most)),
          static_cast<std::size_t>(place.at("stop").as_integer(0, most))};
}

void read_steps(const JsonPlace& place, Decoder& steps, int depth) {
  const std::string& type = component_type(place);
  if (type == "Sequence") {
    if (depth >= max_sequence_depth) throw Error("{}: Sequences nest more than {} deep", place.where, depth);
    const JsonPlace members = place.at("decoders");
    for (std::size_t i = 0; i < members.array_size(); ++i) read_steps(members.element(i), steps, depth + 1);
  } else if (type == "ByteLevel") {
    steps.emplace_back(DecodeByteLevel{});
  } else if (type == "ByteFallback") {
    steps.emplace_back(DecodeByteFallback{});
  } else if (type == "Fuse") {
    steps.emplace_back(DecodeFuse{});
  } else if (type == "Strip") {
    steps.emplace_back(read_strip(place));
  } else if (type == "Metaspace") {
    steps.emplace_back(DecodeMetaspace{place.at("replacement").as_character(),
                                       read_prepend_scheme(place) != PrependScheme::never});
  } else if (type == "Replace") {
    steps.emplace_back(read_replacement(place));
  } else {
    refuse_component(place, "decoder");
  }
}

}  // namespace

Decoder read_decoder(const JsonPlace& place) {
  Decoder steps;
  read_steps(place, steps, 0);
  return steps;
}

std::string decode_tokens(const Decoder& decoder, std::vector<std::string> tokens) {
  for (const DecoderStep& step : decoder) std::visit(ApplyStep{tokens}, step);
  return concatenate(tokens);
}

std::string token_bytes(const Decoder& decoder, const std::string& token) {
  std::string bytes = token;
  for (const DecoderStep& step : decoder) bytes = std::visit(TokenBytes{std::move(bytes)}, step);
  return bytes;
}

}  // namespace sinkscope
