// Filters and tests by name.
#pragma once

#include <string>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// input | name(arguments). Throws TemplateError for a name that is not supported.
Value apply_filter(Work& work, const std::string& name, const Value& input, const Arguments& arguments);

/// input is name(arguments). Throws TemplateError for a name that is not supported.
bool passes_test(Work& work, const std::string& name, const Value& input, const Arguments& arguments);

}  // namespace sinkscope::jinja
