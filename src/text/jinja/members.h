// Attributes, elements, slices and methods of values.
#pragma once

#include <optional>
#include <string>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// object.name: undefined where there is none. Throws TemplateError for an undefined object, and for a method
/// of Python's that is named without calling it.
Value get_member(Work& work, const Value& object, const std::string& name);

/// object[key], which falls back to the attribute for a text.
Value get_element(Work& work, const Value& object, const Value& key);

/// object[begin:end:step] of a text, a list or a tuple; none: left out.
Value get_slice(Work& work, const Value& object, const Value& begin, const Value& end, const Value& step);

/// object.name(arguments) where that is a method of a text or a dict; nothing where it is none. Throws
/// TemplateError for a method of Python's that is not supported.
std::optional<Value> call_method(Work& work, const Value& object, const std::string& name,
                                 const Arguments& arguments);

}  // namespace sinkscope::jinja
