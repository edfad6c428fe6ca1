#include "base/ordered_json.h"

#include "base/json.h"

namespace sinkscope {

nlohmann::ordered_json parse_ordered_json(std::string_view text, const std::string& where) {
  (void)parse_json(text, where);
  return nlohmann::ordered_json::parse(text);
}

}  // namespace sinkscope
