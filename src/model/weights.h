// A checkpoint's weights as the forward pass holds them.
#pragma once

#include <sinkscope/transformer.h>

#include <memory>
#include <vector>

#include "ops/linear.h"

namespace sinkscope {

struct BlockWeights {
  at::Tensor attention_norm;  // [width]
  Linear query, key, value, attention_out;
  at::Tensor mlp_norm;  // [width]
  Linear gate, up, down;
};

struct TransformerWeights {
  std::shared_ptr<const Checkpoint> checkpoint;  // some tensors lie in its files
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  WeightFormat format = WeightFormat::native;
  Backend backend = Backend::cpu;
  at::Tensor
      embedding;  // [embedding_rows, width]; in the stored dtype on the CPU: rows are cast as they are read
  std::vector<BlockWeights> blocks;
  at::Tensor final_norm;  // [width]
  Linear head;            // [head_rows, width]
};

std::shared_ptr<const TransformerWeights> load_weights(std::shared_ptr<const Checkpoint> checkpoint,
                                                       const TransformerOptions& options);

}  // namespace sinkscope
