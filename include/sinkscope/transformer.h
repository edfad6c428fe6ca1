// The forward pass of a checkpoint.
#pragma once

#include <ATen/core/Tensor.h>
#include <sinkscope/checkpoint.h>
#include <sinkscope/key_action.h>
#include <sinkscope/key_value_cache.h>
#include <sinkscope/observation.h>
#include <sinkscope/row_keys.h>
#include <sinkscope/vocabulary.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace sinkscope {

/// How the matrices are kept.
enum class WeightFormat {
  native,  ///< in the dtype of the model
  /// 8-bit integers, a scale for each output column; inputs are quantised row by row as they come. CPU only.
  int8,
};

struct TransformerOptions {
  at::ScalarType dtype = at::kFloat;  // float32 or bfloat16; float16 on a GPU only
  at::Device device = at::kCPU;
  WeightFormat weights = WeightFormat::native;
  /// Runs libtorch's own operations on the CPU too: slower, and what the kernels are tested against.
  bool plain_operations = false;
  /// Called while loading with the share done, 0 to 1.
  std::function<void(double)> progress;
};

/// What to do with the rows that leave the last block.
enum class Head {
  logits,      ///< all their logits
  vocabulary,  ///< their arg-max and what its probability takes; the logits are never stored
  none,        ///< nothing: ForwardResult::hidden, for Transformer::logits_of
};

/// What the attention of one layer compares, of all N tokens; q and k as the scores are made of them, normed
/// and rotated where the model does so. In the dtype and on the device of the model; views of the pass's
/// buffers, void when the call is over.
struct HeadStates {
  std::int64_t layer = 0;
  const at::Tensor& query;  // [N, H, head_dim]
  const at::Tensor& key;    // [N, Hkv, head_dim]
  const at::Tensor& value;  // likewise
};

struct ForwardRequest {
  const TokenBatch& tokens;
  /// The tokens whose predictions are wanted, ascending indices into the batch; none: all of them. The last
  /// block computes for the others only what is observed.
  std::optional<std::vector<std::int64_t>> wanted = std::nullopt;
  Head head = Head::logits;
  VocabularyOptions vocabulary = {};  // of Head::vocabulary
  Capture capture = Capture::none;
  std::vector<LayerHead> maps = {};  // full attention maps of these
  bool hidden_norms = false;
  /// Called for every layer, in order, before its attention.
  std::function<void(const HeadStates&)> look = {};
  /// [L, H, K], 1 = this key is removed from every query of that layer and head before the softmax, or
  /// changed otherwise, as `change` says. Null: none.
  const std::uint8_t* removed = nullptr;
  /// [L, H, N, room]: the same for single queries; one of the two.
  RowKeys row_removed = {};
  KeyChange change = {};
  RowRequest rows = {};  // `listed` is [K]
  /// Keys and values of other positions than the batch's. Null: the batch holds whole sequences.
  const CachedTokens* cached = nullptr;
};

/// Over the W wanted tokens.
struct ForwardResult {
  at::Tensor logits;          // [W, head_rows], the model's dtype, on its device
  VocabularyRows vocabulary;  // W rows, with guidance half as many
  at::Tensor hidden;          // [W, width] after the last block, before the final norm
  at::Tensor hidden_norm;     // float32 [L + 1, N] on the CPU: embeddings, then after each block
  Observation observation;
};

/// The buffers of forward passes. A sampler keeps one for all its steps, so that nothing is allocated from
/// step to step. The hidden rows and the observation of a pass lie in it and are void at its next pass. One
/// pass at a time.
class ForwardWorkspace {
 public:
  ForwardWorkspace();
  ~ForwardWorkspace();
  ForwardWorkspace(const ForwardWorkspace&) = delete;
  ForwardWorkspace& operator=(const ForwardWorkspace&) = delete;

 private:
  friend class Transformer;
  friend class ForwardPass;
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct TransformerWeights;

/// Holds the weights in the wanted dtype on the wanted device; copies share them. const use is thread-safe.
class Transformer {
 public:
  /// Converts, packs or maps the weights. Throws Error naming the checkpoint when dtype or device cannot be
  /// had. The checkpoint is kept alive as long as weights are used where they lie.
  Transformer(std::shared_ptr<const Checkpoint> checkpoint, const TransformerOptions& options);

  /// x = embedding; per block x += attention(rms_norm(x)), x += mlp(rms_norm(x)); logits =
  /// head(rms_norm(x)). Throws UsageError when an id lies outside the embedding or a position outside its
  /// slot.
  ForwardResult forward(const ForwardRequest& request, ForwardWorkspace& workspace) const;
  /// The same with a workspace of its own.
  ForwardResult forward(const ForwardRequest& request) const;
  /// Logits of some of ForwardResult::hidden: [R, width] -> [R, head_rows] in the model's dtype. Rows of one
  /// sequence only.
  at::Tensor logits_of(const at::Tensor& hidden) const;

  const ModelConfig& config() const;
  at::ScalarType dtype() const;
  const at::Device& device() const;
  WeightFormat weight_format() const;
  /// In words: which products and kernels do the work ("oneDNN float32, avx2 kernels").
  std::string implementation() const;

 private:
  std::shared_ptr<const TransformerWeights> weights_;
};

}  // namespace sinkscope
