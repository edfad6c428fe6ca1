// Renders small templates for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <string>

#include "base/json.h"
#include "text/jinja/json_value.h"
#include "text/jinja/template.h"

namespace sinkscope::jinja {

/// The text of a program with the members of an object as its names, on 6 July 2024.
inline std::string render(const std::string& program, const nlohmann::ordered_json& names = {},
                          const Dialect& dialect = {}) {
  using namespace std::chrono;
  Work work(program.size() + names.dump().size());
  Context context{{}, year_month_day{year(2024), month(7), day(6)}};
  for (const auto& [name, value] : names.items()) context.names.emplace_back(name, value_of(work, value));
  return Template(program, "T", "ADVICE", dialect).render(context, work);
}

/// The message of the Error that rendering it throws; empty if none.
inline std::string render_error(const std::string& program, const nlohmann::ordered_json& names = {}) {
  try {
    render(program, names);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace sinkscope::jinja
