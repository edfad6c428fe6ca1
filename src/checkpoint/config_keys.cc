#include "checkpoint/config_keys.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "checkpoint/message.h"

namespace sinkscope {
namespace {

// Ids travel as int32 in run directories.
constexpr std::int64_t largest_id = std::numeric_limits<std::int32_t>::max();

[[noreturn]] void refuse(const ConfigSource& source, std::string_view key, const Json& value,
                         const std::string& right) {
  throw Error("{}: {} is {}; it should be {}", source.where, key, shown(value), right);
}

[[noreturn]] void refuse_absence(const ConfigSource& source, std::string_view key) {
  throw Error("{}: the key {} is missing", source.where, key);
}

// None when the value is no integer of [smallest, largest]. JSON's 64.0 is not taken for 64.
std::optional<std::int64_t> integer_in(const Json& value, std::int64_t smallest, std::int64_t largest) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return std::nullopt;
  const auto number = value.get<std::int64_t>();
  if (number < smallest || number > largest) return std::nullopt;
  return number;
}

std::int64_t id_of(const ConfigSource& source, std::string_view key, const Json& value) {
  const auto id = integer_in(value, 0, largest_id);
  if (!id) refuse(source, key, value, "a token id, an integer from 0");
  return *id;
}

// Numbers compare as numbers (1 and 1.0); containers are never right and are not compared, which would
// recurse.
bool is_right(const Json& value, const Json& right) { return !value.is_structured() && value == right; }

}  // namespace

const Json* find_key(const ConfigSource& source, std::string_view key) {
  const auto found = source.object.find(key);
  return found == source.object.end() || found->is_null() ? nullptr : &*found;
}

std::optional<std::int64_t> optional_count(const ConfigSource& source, std::string_view key,
                                           std::int64_t largest) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  const auto count = integer_in(*value, 1, largest);
  if (!count) refuse(source, key, *value, fmt::format("an integer from 1 to {}", largest));
  return count;
}

void refuse_unknown_keys(const ConfigSource& source, const std::vector<std::string>& known) {
  for (const auto& [key, value] : source.object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    throw Error("{}: there is no key {}; there are {}", source.where, key, fmt::join(known, ", "));
  }
}

std::optional<std::int64_t> optional_count_or_zero(const ConfigSource& source, std::string_view key,
                                                   std::int64_t largest) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  const auto count = integer_in(*value, 0, largest);
  if (!count) refuse(source, key, *value, fmt::format("an integer from 0 to {}", largest));
  return count;
}

std::int64_t required_count(const ConfigSource& source, std::string_view key, std::int64_t largest) {
  const auto count = optional_count(source, key, largest);
  if (!count) refuse_absence(source, key);
  return *count;
}

std::optional<double> optional_positive(const ConfigSource& source, std::string_view key, double largest) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::numeric_limits<double>::quiet_NaN();
  if (!(number > 0 && number <= largest))
    refuse(source, key, *value, fmt::format("a number above 0, at most {}", largest));
  return number;
}

double required_positive(const ConfigSource& source, std::string_view key, double largest) {
  const auto number = optional_positive(source, key, largest);
  if (!number) refuse_absence(source, key);
  return *number;
}

std::optional<bool> optional_flag(const ConfigSource& source, std::string_view key) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse(source, key, *value, "true or false");
  return value->get<bool>();
}

std::optional<std::int64_t> optional_id(const ConfigSource& source, std::string_view key) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return std::nullopt;
  return id_of(source, key, *value);
}

std::vector<std::int64_t> ids(const ConfigSource& source, std::string_view key) {
  const Json* value = find_key(source, key);
  if (value == nullptr) return {};
  if (!value->is_array()) return {id_of(source, key, *value)};
  std::vector<std::int64_t> list;
  for (const Json& element : *value) list.push_back(id_of(source, key, element));
  return list;
}

void check_switch(const ConfigSource& source, const Switch& expected) {
  const Json* value = find_key(source, expected.key);
  if (value == nullptr && !expected.required) return;
  if (value != nullptr && is_right(*value, expected.right)) return;
  throw Error("{}: {} is {}; only {} is supported", source.where, expected.key,
              value == nullptr ? "missing" : shown(*value),
              expected.right.is_null() ? "null (or no such key)" : shown(expected.right));
}

}  // namespace sinkscope
