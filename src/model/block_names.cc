#include "model/block_names.h"

namespace sinkscope {

// LLaDA and MMaDA follow OLMo. Mind that `ff_out` is both a block's down projection and the output matrix.
BlockNames block_names(Family /*family*/, std::int64_t layer) {
  const std::string block = "model.transformer.blocks." + std::to_string(layer) + ".";
  return {block + "attn_norm.weight", block + "q_proj.weight",   block + "k_proj.weight",
          block + "v_proj.weight",    block + "attn_out.weight", block + "ff_norm.weight",
          block + "ff_proj.weight",   block + "up_proj.weight",  block + "ff_out.weight"};
}

OuterNames outer_names(Family /*family*/) {
  return {"model.transformer.wte.weight", "model.transformer.ln_f.weight", "model.transformer.ff_out.weight"};
}

}  // namespace sinkscope
