#include "text/jinja/json_value.h"

#include <limits>
#include <utility>
#include <vector>

namespace sinkscope::jinja {
namespace {

bool fits(const nlohmann::ordered_json& json) {
  constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
  return json.is_number_integer() && (!json.is_number_unsigned() || json.get<std::uint64_t>() <= largest);
}

}  // namespace

Value value_of(Work& work, const nlohmann::ordered_json& json) {
  if (json.is_null()) return None{};
  if (json.is_boolean()) return json.get<bool>();
  if (fits(json)) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  if (json.is_string()) return make_text(work, json.get<std::string>());
  if (json.is_array()) {
    std::vector<Value> items;
    for (const auto& item : json) items.push_back(value_of(work, item));
    return make_list(work, std::move(items));
  }
  std::vector<std::pair<std::string, Value>> entries;
  for (const auto& [key, value] : json.items()) entries.emplace_back(key, value_of(work, value));
  return make_dict(work, std::move(entries));
}

}  // namespace sinkscope::jinja
