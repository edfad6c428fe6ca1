#include "cli/option_table.h"

#include <fmt/ranges.h>
#include <sinkscope/error.h>

#include <algorithm>

namespace sinkscope {
namespace {

std::string with_underscores(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

std::string with_dashes(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

}  // namespace

std::vector<std::string> normalise_options(int count, const char* const* arguments) {
  std::vector<std::string> result;
  bool options = true;
  for (int i = 1; i < count; ++i) {
    std::string argument = arguments[i];
    if (argument == "--") options = false;
    if (options && argument.starts_with("--")) {
      constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyz0123456789-_";
      const std::size_t end = std::min(argument.find('='), argument.size());
      const bool is_name = argument.find_first_not_of(name_characters) >= end;
      if (is_name) {
        argument = with_dashes(argument.substr(0, end)) + argument.substr(end);
        if (argument.ends_with('=') &&
            end == argument.size() - 1) {  // CLI11 would look for the value further on
          argument.pop_back();
          result.push_back(std::move(argument));
          argument = "";
        }
      }
    }
    result.push_back(std::move(argument));
  }
  return result;
}

CLI::Option* OptionTable::repeatable(const std::string& name, std::vector<std::string>& values,
                                     const std::string& help) {
  remember(name, [&values] { return nlohmann::ordered_json(values); });
  // Without extra arguments CLI11 also leaves a value of the form "[a,b]" in one piece.
  return app_.add_option("--" + name, values, help)->expected(1)->take_all()->allow_extra_args(false);
}

CLI::Option* OptionTable::choice(const std::string& name, std::string& value,
                                 const std::vector<std::string>& choices, const std::string& help) {
  remember(name, [&value] { return nlohmann::ordered_json(value); });
  return app_.add_option("--" + name, value, help)
      ->check([choices](const std::string& given) {
        if (std::find(choices.begin(), choices.end(), given) != choices.end()) return std::string();
        return fmt::format("'{}' is none of {}", given, fmt::join(choices, ", "));
      })
      ->type_name(fmt::format("{}", fmt::join(choices, "|")))
      ->take_last()
      ->capture_default_str();
}

CLI::Option* OptionTable::flag(const std::string& name, bool& value, const std::string& help) {
  remember(name, [&value] { return nlohmann::ordered_json(value); });
  return app_.add_flag("--" + name, value, help);
}

nlohmann::ordered_json OptionTable::to_json(const std::vector<std::string>& without) const {
  auto result = nlohmann::ordered_json::object();
  for (const auto& [name, value] : values_)
    if (std::find(without.begin(), without.end(), name) == without.end())
      result[with_underscores(name)] = value();
  return result;
}

std::vector<std::string> OptionTable::to_arguments(const nlohmann::ordered_json& options,
                                                   const std::string& where) const {
  std::vector<std::string> arguments;
  for (const auto& [key, value] : options.items()) {
    const std::string name = with_dashes(key);
    const bool known =
        std::any_of(values_.begin(), values_.end(), [&](const auto& entry) { return entry.first == name; });
    if (!known) throw Error("{}: options.{} is not an option of this version", where, key);
    const auto text = [&](const nlohmann::ordered_json& v) {
      return v.is_string() ? v.get<std::string>() : v.dump();
    };
    const bool absent = value.is_null() || (value.is_boolean() && !value.get<bool>()) ||
                        (value.is_string() && value.get<std::string>().empty());
    if (absent) continue;
    if (value.is_boolean()) {
      arguments.push_back("--" + name);
    } else if (value.is_array()) {
      for (const auto& element : value) arguments.insert(arguments.end(), {"--" + name, text(element)});
    } else if (value.is_string() || value.is_number()) {
      arguments.insert(arguments.end(), {"--" + name, text(value)});
    } else {
      throw Error("{}: options.{} must be a string, number, boolean or list", where, key);
    }
  }
  return arguments;
}

}  // namespace sinkscope
