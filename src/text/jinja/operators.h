// Arithmetic and comparisons as Python has them.
#pragma once

#include "text/jinja/syntax.h"
#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// Throws TemplateError for types that Python does not combine and for integers beyond 64 bits.
Value compute(Work& work, Arithmetic operation, const Value& left, const Value& right);
Value negate(const Value& value);
bool compare(Work& work, Comparison comparison, const Value& left, const Value& right);

}  // namespace sinkscope::jinja
