// model.safetensors.index.json: which shard holds which tensor.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace sinkscope {

/// Tensor name -> file name (in the index's own folder) of a sharded checkpoint. Refuses file names that are
/// not plain names of .safetensors files. `where` names the index in the Error.
std::map<std::string, std::string> parse_weight_index(std::string_view text, const std::string& where);

}  // namespace sinkscope
