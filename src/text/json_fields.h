// Typed reading of JSON members with errors that name the file and the place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"

namespace sinkscope {

/// A JSON value and the words that name it in errors: "DIR/tokenizer.json: pre_tokenizer.pretokenizers[0]".
struct JsonPlace {
  const Json& value;
  std::string where;

  bool is_null() const { return value.is_null(); }
  /// The member `key`, or nothing when it is absent or null. Throws Error when this is no object.
  std::optional<JsonPlace> find(const std::string& key) const;
  /// The member `key`; throws Error when it is absent.
  JsonPlace at(const std::string& key) const;
  /// Element of an array; the caller checked the range.
  JsonPlace element(std::size_t index) const;
  /// Number of elements; throws Error when this is no array.
  std::size_t array_size() const;

  const std::string& as_string() const;
  bool as_bool() const;
  /// An integer in [low, high]; throws Error naming the range otherwise.
  std::int64_t as_integer(std::int64_t low, std::int64_t high) const;

  bool bool_or(const std::string& key, bool fallback) const;
  std::string string_or(const std::string& key, const std::string& fallback) const;
  /// A string of exactly one character, as its code point.
  std::uint32_t as_character() const;
};

/// The member "type" of a component such as {"type": "NFC"}.
const std::string& component_type(const JsonPlace& component);

/// The error for a component that this program does not have.
[[noreturn]] void refuse_component(const JsonPlace& component, const char* kind);

/// Depth to which Sequence components may nest.
constexpr int max_sequence_depth = 16;

}  // namespace sinkscope
