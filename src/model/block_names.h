// The names of a block's tensors, by family.
#pragma once

#include <sinkscope/model_config.h>

#include <string>

namespace sinkscope {

/// Full tensor names. A new naming scheme is a new case in block_names.cc, the forward pass stays.
struct BlockNames {
  std::string attention_norm, query, key, value, attention_out;
  std::string mlp_norm, gate, up, down;
};
struct OuterNames {
  std::string embedding, final_norm, head;
};

BlockNames block_names(Family family, std::int64_t layer);
OuterNames outer_names(Family family);

}  // namespace sinkscope
