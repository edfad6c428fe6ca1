// The filter tojson: Python's json.dumps as transformers calls it.
#pragma once

#include <optional>
#include <string>

#include "text/jinja/value.h"

namespace sinkscope::jinja {

struct JsonStyle {
  bool ascii_only = false;
  std::optional<std::string> indent;  // of one level; none: everything on one line
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sort_keys = false;
};

/// Throws TemplateError for values that JSON does not have.
std::string to_json(Work& work, const Value& value, const JsonStyle& style);

}  // namespace sinkscope::jinja
