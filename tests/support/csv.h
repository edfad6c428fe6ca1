// Tables that the program wrote.
#pragma once

#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace sinkscope::testing {

/// Rows by the names of the first line. Fields in quotes may hold commas, doubled quotes and line breaks.
inline std::vector<std::map<std::string, std::string>> read_csv(const std::string& content) {
  std::vector<std::vector<std::string>> lines(1);
  std::string field;
  bool quoted = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const char c = content[i];
    if (quoted && c == '"' && i + 1 < content.size() && content[i + 1] == '"') {
      field += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == ',' || c == '\n')) {
      lines.back().push_back(std::move(field));
      field.clear();
      if (c == '\n') lines.emplace_back();
    } else {
      field += c;
    }
  }
  std::vector<std::map<std::string, std::string>> rows;
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) {
    rows.emplace_back();
    for (std::size_t k = 0; k < lines[0].size(); ++k) rows.back()[lines[0][k]] = lines[i].at(k);
  }
  return rows;
}

}  // namespace sinkscope::testing
