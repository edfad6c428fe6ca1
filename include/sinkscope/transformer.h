// The forward pass of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/observation.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

struct TransformerOptions {
  at::ScalarType dtype = at::kFloat;  // float32 or bfloat16; float16 on a GPU only
  at::Device device = at::kCPU;
  /// Runs libtorch's own operations on the CPU too: slower, and what the kernels are tested against.
  bool plain_operations = false;
  /// Called while loading with the share done, 0 to 1.
  std::function<void(double)> progress;
};

struct ForwardRequest {
  const TokenBatch& tokens;
  /// Tokens whose logits are wanted, ascending indices into the batch; none: all of them.
  std::optional<std::vector<std::int64_t>> logit_tokens = std::nullopt;
  Capture capture = Capture::none;
  std::vector<LayerHead> maps = {};  // full attention maps of these
  bool hidden_norms = false;
  /// [L, H, N], 1 = this key is removed from every query of that layer and head before the softmax. Null:
  /// none.
  const std::uint8_t* removed = nullptr;
};

struct ForwardResult {
  at::Tensor logits;       // [wanted tokens, head_rows], the model's dtype, on its device
  at::Tensor hidden_norm;  // float32 [L + 1, N] on the CPU: embeddings, then after each block
  Observation observation;
};

struct TransformerWeights;

/// Holds the weights in the wanted dtype on the wanted device; copies share them. const use is thread-safe.
class Transformer {
 public:
  /// Converts, packs or maps the weights. Throws Error naming the checkpoint when dtype or device cannot be
  /// had. The checkpoint is kept alive as long as weights are used where they lie.
  Transformer(std::shared_ptr<const Checkpoint> checkpoint, const TransformerOptions& options);

  /// spec: x = embedding; per block x += attention(rms_norm(x)), x += mlp(rms_norm(x)); logits =
  /// head(rms_norm(x)). Throws UsageError when an id lies outside the embedding.
  ForwardResult forward(const ForwardRequest& request) const;

  const ModelConfig& config() const;
  at::ScalarType dtype() const;
  const at::Device& device() const;
  /// In words: which products and kernels do the work ("oneDNN float32, avx2 kernels").
  std::string implementation() const;

 private:
  std::shared_ptr<const TransformerWeights> weights_;
};

}  // namespace sinkscope
