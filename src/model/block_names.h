// The names of a block's tensors, by naming scheme.
#pragma once

#include <sinkscope/model_config.h>

#include <string>

namespace sinkscope {

/// Full tensor names. A new naming scheme is a new case in block_names.cc, the forward pass stays.
struct BlockNames {
  std::string attention_norm, query, key, value, attention_out;
  std::string query_bias, key_bias, value_bias, output_bias;  // empty: none
  std::string query_norm, key_norm;                           // empty: none
  std::string mlp_norm, gate, up, down;                       // without experts
  std::string router, selection_bias, experts;  // with experts; `experts` is what expert_names() begins with
};
struct ExpertNames {
  std::string gate, up, down;
};
struct OuterNames {
  std::string embedding, final_norm, head;
};

BlockNames block_names(const ModelConfig& config, std::int64_t layer);
ExpertNames expert_names(const BlockNames& block, std::int64_t expert);
OuterNames outer_names(const ModelConfig& config);

}  // namespace sinkscope
