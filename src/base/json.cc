#include "base/json.h"

#include <sinkscope/error.h>

#include <set>
#include <vector>

#include "base/files.h"
#include "base/text_parts.h"

namespace sinkscope {
namespace {

// Copying, comparing and writing a value recurse; hostile files must not choose how deep.
constexpr int deepest_json = 256;

// Keys and the library's messages quote the input, which may be one string of megabytes.
std::string shortened(const std::string& text) {
  constexpr std::size_t longest = 300;
  return text.size() <= longest ? text : std::string(utf8_prefix(text, longest)) + "...";
}

// The library's message without its number; a text of one line has no line numbers, which may be those of a
// file around it.
std::string message_of(const Json::exception& error, std::string_view text) {
  std::string message = error.what();
  if (const std::size_t number = message.find("] "); message.starts_with('[') && number != std::string::npos)
    message.erase(0, number + 2);
  constexpr std::string_view first_line = "parse error at line 1, ";
  if (message.starts_with(first_line) && text.find('\n') == std::string_view::npos)
    message.replace(0, first_line.size(), "at ");
  return shortened(message);
}

}  // namespace

Json parse_json(std::string_view text, const std::string& where) {
  // The library takes a zero byte for the end and would not see what follows.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos)
    throw Error("{} is not valid JSON (byte {} is zero)", where, zero);
  // One set of seen keys per open object.
  std::vector<std::set<std::string>> open_objects;
  const auto refuse_duplicates = [&](int depth, Json::parse_event_t event, Json& value) {
    if (depth > deepest_json)
      throw Error("{} nests objects and lists deeper than {} levels", where, deepest_json);
    if (event == Json::parse_event_t::object_start) {
      open_objects.emplace_back();
    } else if (event == Json::parse_event_t::object_end) {
      open_objects.pop_back();
    } else if (event == Json::parse_event_t::key) {
      if (!open_objects.back().insert(value.get<std::string>()).second)
        throw Error("{}: the key {} stands twice in one object", where, shortened(json_line(value)));
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), refuse_duplicates);
  } catch (const Json::exception& error) {
    throw Error("{} is not valid JSON ({})", where, message_of(error, text));
  }
}

Json read_json_file(const std::filesystem::path& path, std::uintmax_t max_bytes) {
  return parse_json(read_file(path, max_bytes), path.string());
}

std::string json_type_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
      return "an integer";
    case Json::value_t::number_float:
      return "a number";
    default:
      return "an unknown value";
  }
}

}  // namespace sinkscope
