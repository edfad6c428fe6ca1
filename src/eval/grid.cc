#include "eval/grid.h"

#include <fmt/format.h>
#include <sinkscope/error.h>

#include <algorithm>
#include <charconv>

#include "base/text_parts.h"

namespace sinkscope {

std::vector<std::string> parse_names(const std::string& text, const std::string& option) {
  std::vector<std::string> names;
  for (const std::string_view part : comma_parts(text)) {
    const std::string name(part);
    if (name.empty())
      throw UsageError("{} \"{}\" has an empty entry; names with commas between them would be right", option,
                       text);
    if (std::find(names.begin(), names.end(), name) != names.end())
      throw UsageError("{} \"{}\" names {} twice", option, text, name);
    names.push_back(name);
  }
  return names;
}

std::vector<int> parse_numbers(const std::string& text, const std::string& option) {
  std::vector<int> numbers;
  for (const std::string& name : parse_names(text, option)) {
    int number = -1;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size() || number < 0)
      throw UsageError("{} \"{}\": '{}' is no whole number from 0 on", option, text, name);
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<Cell> grid_cells(const std::vector<int>& top_ks, const std::vector<std::string>& ranks,
                             const std::vector<std::string>& controls) {
  std::vector<Cell> cells;
  if (std::find(top_ks.begin(), top_ks.end(), 0) != top_ks.end()) cells.push_back({"plain", 0, "", "none"});
  for (const std::string& rank : ranks)
    for (const int top_k : top_ks)
      for (const std::string& control : controls)
        if (top_k > 0)
          cells.push_back({fmt::format("{}-{}{}", rank, top_k, control == "none" ? "" : "-" + control), top_k,
                           rank, control});
  return cells;
}

}  // namespace sinkscope
