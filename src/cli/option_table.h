// Options declared once: name, variable, default and help together. What a command was called with can be
// written as JSON (run.json `options`) and read back from it.
#pragma once

#include <CLI/CLI.hpp>
#include <charconv>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace sinkscope {

/// `--num_samples=3` -> `--num-samples=3`: long options take `-` and `_` alike. Values are left alone, and so
/// is everything after `--`.
std::vector<std::string> normalise_options(int count, const char* const* arguments);

/// What is wrong with a number's text, "" when nothing is; any text suits the types that are no numbers.
/// CLI11 alone would clamp what does not fit.
template <typename T>
std::string number_check(const std::string& text) {
  if constexpr (std::is_arithmetic_v<T>) {
    T value{};
    const char* end = text.data() + text.size();
    const auto [parsed, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc::result_out_of_range) return "'" + text + "' is too large";
    if (error != std::errc() || parsed != end)
      return "'" + text + "' is not a " + (std::is_integral_v<T> ? "whole number" : "number");
  }
  return "";
}

class OptionTable {
 public:
  explicit OptionTable(CLI::App& app) : app_(app) {}

  /// `name` is the long name without dashes. Of an option given twice the last value counts. `value` keeps
  /// its content as the default.
  template <typename T>
  CLI::Option* option(const std::string& name, T& value, const std::string& help) {
    remember(name, [&value] { return nlohmann::ordered_json(value); });
    return app_.add_option("--" + name, value, help)
        ->take_last()
        ->check(number_check<T>)
        ->capture_default_str();
  }
  template <typename T>
  CLI::Option* option(const std::string& name, std::optional<T>& value, const std::string& help) {
    remember(name,
             [&value] { return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr); });
    return app_.add_option("--" + name, value, help)->take_last()->check(number_check<T>);
  }
  /// Repeatable, one value each time; a value may begin with any character.
  CLI::Option* repeatable(const std::string& name, std::vector<std::string>& values, const std::string& help);
  CLI::Option* choice(const std::string& name, std::string& value, const std::vector<std::string>& choices,
                      const std::string& help);
  CLI::Option* flag(const std::string& name, bool& value, const std::string& help);

  /// Long names with `_`, in the order of declaration, but those named in `without`.
  nlohmann::ordered_json to_json(const std::vector<std::string>& without) const;

  /// Arguments that give the values of such an object. Throws Error naming a key that is no option or whose
  /// value is of a type no option has.
  std::vector<std::string> to_arguments(const nlohmann::ordered_json& options,
                                        const std::string& where) const;

 private:
  using Value = std::function<nlohmann::ordered_json()>;
  void remember(const std::string& name, Value value) { values_.emplace_back(name, std::move(value)); }

  CLI::App& app_;
  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace sinkscope
