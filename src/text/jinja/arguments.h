// The arguments of a call, matched with the names of its parameters.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/jinja/value.h"

namespace sinkscope::jinja {

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// One entry a parameter, empty where it was not given. Throws TemplateError, naming `callee`, for an
/// argument too many, a name that no parameter has and one given twice.
std::vector<std::optional<Value>> bind(const Arguments& arguments, std::string_view callee,
                                       const std::vector<std::string_view>& parameters);

/// The argument as a text, an integer or a truth; `fallback` where it was not given. Throws TemplateError for
/// another type.
std::string text_or(const std::optional<Value>& argument, std::string_view callee, std::string fallback);
std::int64_t integer_or(const std::optional<Value>& argument, std::string_view callee, std::int64_t fallback);
bool truth_or(const std::optional<Value>& argument, bool fallback);
/// Throws TemplateError when it was not given.
const Value& required(const std::optional<Value>& argument, std::string_view callee);

}  // namespace sinkscope::jinja
