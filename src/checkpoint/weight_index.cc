#include "checkpoint/weight_index.h"

#include <sinkscope/error.h>

#include "base/foreign_content.h"
#include "base/json.h"
#include "checkpoint/message.h"

namespace sinkscope {
namespace {

// An index names files beside itself. Anything that could lead elsewhere is an attack or a mistake.
bool is_plain_shard_name(std::string_view name) {
  return name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos &&
         name.ends_with(".safetensors") && !name.starts_with('.');
}

}  // namespace

std::map<std::string, std::string> parse_weight_index(std::string_view text, const std::string& where) {
  if (const auto foreign = foreign_content(text)) throw Error("{} is {}", where, *foreign);
  const Json index = parse_json(text, where);
  if (!index.is_object()) throw Error("{} should hold an object, not {}", where, json_type_name(index));
  const auto weight_map = index.find("weight_map");
  if (weight_map == index.end() || !weight_map->is_object())
    throw Error("{}: weight_map should be an object of tensor and file names, it is {}", where,
                weight_map == index.end() ? "missing" : json_type_name(*weight_map));
  if (weight_map->empty()) throw Error("{}: weight_map names no tensor", where);

  std::map<std::string, std::string> shards;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !is_plain_shard_name(file.get_ref<const std::string&>()))
      throw Error(
          "{}: weight_map gives tensor {} the file {}; a plain name like model-00001-of-00002.safetensors "
          "would be right",
          where, in_quotes(tensor), shown(file));
    shards.emplace(tensor, file.get_ref<const std::string&>());
  }
  return shards;
}

}  // namespace sinkscope
