// The functions that a template finds without defining them.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

#include "text/jinja/arguments.h"
#include "text/jinja/value.h"

namespace sinkscope::jinja {

/// The function of this name, or nothing. Throws TemplateError for those of Jinja's that are not supported.
std::optional<Global> find_global(std::string_view name);

/// All but namespace(), which needs an owner: range, dict, raise_exception (throws TemplateRefusal) and
/// strftime_now, for which it is midnight of `today`.
Value call_global(Work& work, Global function, const Arguments& arguments, std::chrono::year_month_day today);

}  // namespace sinkscope::jinja
