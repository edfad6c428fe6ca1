#include "text/jinja/arguments.h"

#include <fmt/format.h>

#include <algorithm>

namespace sinkscope::jinja {

std::vector<std::optional<Value>> bind(const Arguments& arguments, std::string_view callee,
                                       const std::vector<std::string_view>& parameters) {
  if (arguments.positional.size() > parameters.size())
    throw TemplateError(fmt::format("{} takes at most {} arguments, not {}", callee, parameters.size(),
                                    arguments.positional.size()));
  std::vector<std::optional<Value>> bound(parameters.size());
  std::copy(arguments.positional.begin(), arguments.positional.end(), bound.begin());
  for (const auto& [name, value] : arguments.named) {
    const auto parameter = std::find(parameters.begin(), parameters.end(), name);
    if (parameter == parameters.end())
      throw TemplateError(fmt::format("{} has no argument named {}", callee, name.substr(0, 60)));
    auto& slot = bound[static_cast<std::size_t>(parameter - parameters.begin())];
    if (slot) throw TemplateError(fmt::format("{} gets its argument {} twice", callee, name.substr(0, 60)));
    slot = value;
  }
  return bound;
}

std::string text_or(const std::optional<Value>& argument, std::string_view callee, std::string fallback) {
  if (!argument) return fallback;
  if (const std::string* text = text_of(*argument)) return *text;
  throw TemplateError(fmt::format("{} takes a string, not {}", callee, type_name(*argument)));
}

std::int64_t integer_or(const std::optional<Value>& argument, std::string_view callee,
                        std::int64_t fallback) {
  if (!argument) return fallback;
  if (const auto integer = integer_of(*argument)) return *integer;
  throw TemplateError(fmt::format("{} takes an integer, not {}", callee, type_name(*argument)));
}

bool truth_or(const std::optional<Value>& argument, bool fallback) {
  return argument ? is_true(*argument) : fallback;
}

const Value& required(const std::optional<Value>& argument, std::string_view callee) {
  if (!argument) throw TemplateError(fmt::format("{} lacks an argument", callee));
  return *argument;
}

}  // namespace sinkscope::jinja
