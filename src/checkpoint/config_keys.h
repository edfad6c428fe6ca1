// Typed access to the keys of a config.json. Unknown keys are nobody's business; a known key of the wrong
// type or out of range is an Error naming file, key and value. A null counts as absent.
#pragma once

#include <sinkscope/error.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/json.h"
#include "checkpoint/message.h"

namespace sinkscope {

struct ConfigSource {
  const Json& object;  // is_object()
  std::string where;   // "DIR/config.json"
};

/// Null when the key is absent or null.
const Json* find_key(const ConfigSource& source, std::string_view key);

/// An integer in [1, largest]; none when absent.
std::optional<std::int64_t> optional_count(const ConfigSource& source, std::string_view key,
                                           std::int64_t largest);
/// The same; its absence is an Error.
std::int64_t required_count(const ConfigSource& source, std::string_view key, std::int64_t largest);

/// An integer in [0, largest]; none when absent.
std::optional<std::int64_t> optional_count_or_zero(const ConfigSource& source, std::string_view key,
                                                   std::int64_t largest);

/// A number above 0 and at most largest; none when absent.
std::optional<double> optional_positive(const ConfigSource& source, std::string_view key, double largest);
double required_positive(const ConfigSource& source, std::string_view key, double largest);

/// Throws Error naming the first key that is none of these, and all of them in their order.
void refuse_unknown_keys(const ConfigSource& source, const std::vector<std::string>& known);

template <typename Value>
using Choices = std::vector<std::pair<const char*, Value>>;

/// The value whose name stands at `key`; `otherwise` when absent. Throws Error listing the names.
template <typename Value>
Value choice(const ConfigSource& source, const char* key, Value otherwise,
             const std::type_identity_t<Choices<Value>>& choices) {
  const Json* given = find_key(source, key);
  if (given == nullptr) return otherwise;
  std::string names;
  for (const auto& [name, value] : choices) {
    if (*given == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  throw Error("{}: {} is {}; it should be one of {}", source.where, key, shown(*given), names);
}

std::optional<bool> optional_flag(const ConfigSource& source, std::string_view key);

/// A token id in [0, 2^31).
std::optional<std::int64_t> optional_id(const ConfigSource& source, std::string_view key);
/// A token id or a list of them (generation_config.json may hold several end tokens); empty when absent.
std::vector<std::int64_t> ids(const ConfigSource& source, std::string_view key);

/// What a switch must be for our forward pass to be the model's.
struct Switch {
  std::string_view key;
  Json right;     // null: the key must be absent or null
  bool required;  // absence means something else in the authors' code, so the key has to be there
};

/// Throws Error naming the first switch that is not what it must be, with the value found and the right one.
void check_switch(const ConfigSource& source, const Switch& expected);

}  // namespace sinkscope
