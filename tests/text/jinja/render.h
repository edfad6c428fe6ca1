// Renders small templates for tests.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sinkscope/error.h>

#include <string>

#include "base/json.h"
#include "text/jinja/template.h"

namespace sinkscope::jinja {

inline Value value_of(Work& work, const nlohmann::ordered_json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return make_text(work, json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(value_of(work, item));
    return make_list(work, std::move(items));
  }
  if (json.is_null()) return None{};
  std::vector<std::pair<std::string, Value>> entries;
  for (const auto& [key, value] : json.items()) entries.emplace_back(key, value_of(work, value));
  return make_dict(work, std::move(entries));
}

/// The text of a program with the members of an object as its names, on 6 July 2024.
inline std::string render(const std::string& program, const nlohmann::ordered_json& names = {}) {
  using namespace std::chrono;
  Work work(program.size() + names.dump().size());
  Context context{{}, year_month_day{year(2024), month(7), day(6)}};
  for (const auto& [name, value] : names.items()) context.names.emplace_back(name, value_of(work, value));
  return Template(program, "T", "ADVICE").render(context, work);
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
