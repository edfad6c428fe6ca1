#include "text/json_fields.h"

#include <sinkscope/error.h>

#include "text/unicode.h"

namespace sinkscope {

std::optional<JsonPlace> JsonPlace::find(const std::string& key) const {
  if (!value.is_object()) throw Error("{} is {}; an object would be right", where, json_type_name(value));
  const auto member = value.find(key);
  if (member == value.end() || member->is_null()) return std::nullopt;
  // The file's own place is its path; members follow after a colon, deeper ones after dots.
  return JsonPlace{*member, where + (where.find(": ") == std::string::npos ? ": " : ".") + key};
}

JsonPlace JsonPlace::at(const std::string& key) const {
  auto member = find(key);
  if (!member) throw Error("{} has no \"{}\"", where, key);
  return *member;
}

JsonPlace JsonPlace::element(std::size_t index) const {
  return JsonPlace{value[index], fmt::format("{}[{}]", where, index)};
}

std::size_t JsonPlace::array_size() const {
  if (!value.is_array()) throw Error("{} is {}; an array would be right", where, json_type_name(value));
  return value.size();
}

const std::string& JsonPlace::as_string() const {
  if (!value.is_string()) throw Error("{} is {}; a string would be right", where, json_type_name(value));
  return value.get_ref<const std::string&>();
}

bool JsonPlace::as_bool() const {
  if (!value.is_boolean())
    throw Error("{} is {}; true or false would be right", where, json_type_name(value));
  return value.get<bool>();
}

std::int64_t JsonPlace::as_integer(std::int64_t low, std::int64_t high) const {
  const bool fits_int64 =
      value.is_number_integer() && (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t number = fits_int64 ? value.get<std::int64_t>() : 0;
  if (!fits_int64 || number < low || number > high)
    throw Error("{} is {}; an integer from {} to {} would be right", where,
                value.is_number() ? json_line(value) : json_type_name(value), low, high);
  return number;
}

bool JsonPlace::bool_or(const std::string& key, bool fallback) const {
  const auto member = find(key);
  return member ? member->as_bool() : fallback;
}

std::string JsonPlace::string_or(const std::string& key, const std::string& fallback) const {
  const auto member = find(key);
  return member ? member->as_string() : fallback;
}

std::uint32_t JsonPlace::as_character() const {
  const std::string& text = as_string();
  const DecodedChar c = decode_utf8(text);
  if (c.length == 0 || c.length != text.size()) throw Error("{} must be exactly one character", where);
  return c.code_point;
}

const std::string& component_type(const JsonPlace& component) { return component.at("type").as_string(); }

void refuse_component(const JsonPlace& component, const char* kind) {
  throw Error("{}: the {} \"{}\" is not supported", component.where, kind,
              replace_invalid_utf8(component_type(component).substr(0, 100)));
}

}  // namespace sinkscope
