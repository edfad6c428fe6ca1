// The learnt token in front of the text that sees nothing but itself (arXiv:2601.19657).
#pragma once

#include "model/weights.h"

namespace sinkscope {

/// Since the token sees only itself, its key and value in each layer are the same whatever the text: they are
/// computed once and become the slot of each layer. It stands at position 0, where RoPE rotates nothing and
/// to which no position is added, learnt or of sines; the text begins at position 1. token [width]; the
/// weights' blocks are loaded, on the aten backend.
void place_sink_token(const at::Tensor& token, const ModelConfig& config, TransformerWeights& weights);

}  // namespace sinkscope
