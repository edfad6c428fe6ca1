// JSON as the values of a template.
#pragma once

#include <nlohmann/json.hpp>

#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// Members keep their order. Whole numbers above the largest of 63 bits become real ones. Throws
/// TemplateError for what nests deeper than values may.
Value value_of(Work& work, const nlohmann::ordered_json& json);

}  // namespace sinkscope::jinja
