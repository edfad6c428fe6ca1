// A checkpoint's weights as the forward pass holds them.
#pragma once

#include <sinkscope/transformer.h>

#include <memory>
#include <vector>

#include "ops/attention_variant.h"
#include "ops/linear.h"

namespace sinkscope {

struct MlpWeights {
  Linear gate, up, down;
};

struct BlockWeights {
  at::Tensor attention_norm;  // [width]
  Linear query, key, value, attention_out;
  at::Tensor query_bias, key_bias, value_bias, output_bias;  // undefined: none
  at::Tensor query_norm, key_norm;                           // [head_dim]; undefined: none
  at::Tensor mlp_norm;                                       // [width]
  MlpWeights mlp;                                            // without experts
  Linear router;                                             // [experts, width], never in 8-bit integers
  at::Tensor selection_bias;                                 // float32 [experts]; undefined: none
  std::vector<MlpWeights> experts;
  AttentionVariantWeights variant;  // float32
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
  at::Tensor position_table;  // [positions, width], added to the embeddings; undefined: none
  at::Tensor final_norm;      // [width]; undefined: none
  Linear head;                // [head_rows, width]
};

/// Throws UsageError where there are no products of this format for this model on this device.
void check_weight_format(const ModelConfig& config, const TransformerOptions& options);

std::shared_ptr<const TransformerWeights> load_weights(std::shared_ptr<const Checkpoint> checkpoint,
                                                       const TransformerOptions& options);

}  // namespace sinkscope
