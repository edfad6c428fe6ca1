// Chat formats that are known by name.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

struct BuiltInTemplate {
  std::string_view name;
  std::string program;                        // Jinja
  std::map<std::string, std::string> tokens;  // that the format was made with
};

/// All of them, in the order in which they are listed to users.
const std::vector<BuiltInTemplate>& built_in_templates();

}  // namespace sinkscope
