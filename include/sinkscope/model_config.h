// What a model is: the numbers a forward pass and a sampler need, in one naming whatever the checkpoint's
// own.
#pragma once

#include <sinkscope/attention_variant.h>
#include <sinkscope/dtype.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// Models that share a sampler and a chat template. A new family is a line here and a row of the table in
/// src/checkpoint/families.cc; what its forward pass does differently is said by the numbers below, not by
/// its name.
enum class Family { llada, mmada, llada_moe, dream, llama, mistral, qwen2, qwen3 };

/// How a model generates.
enum class Generation {
  masked,          ///< position i predicts position i: LLaDA, MMaDA, LLaDA-MoE
  shifted_masked,  ///< position i predicts position i + 1, masks are filled in any order: Dream
  autoregressive,  ///< position i predicts position i + 1, from left to right
};

/// How the tensors of a checkpoint are named.
enum class TensorNames { olmo, llama };

/// Llama 3.1's stretched frequencies: see ops/rope.h for the formula.
struct Llama3Scaling {
  double factor = 1;
  double low_frequency_factor = 1;
  double high_frequency_factor = 4;
  double original_positions = 8192;

  bool operator==(const Llama3Scaling&) const = default;
};

/// A feed-forward part of several experts, of which a router chooses a few for each token.
struct ExpertsConfig {
  std::int64_t count = 0;
  std::int64_t chosen = 0;     // per token
  bool normalised = false;     // the chosen ones' weights are scaled to sum to 1
  std::string selection_bias;  // tensor name behind "model.layers.N.", added for the choice only; "": none
};

/// "llada", "llada-moe", ...: the word used in run.json and in messages.
std::string_view family_name(Family family);

/// Filled and checked by Checkpoint::open: every count is at least 1, heads is a multiple of kv_heads,
/// head_dim is even, ids lie below embedding_rows, and every weight tensor has the shape these numbers say.
struct ModelConfig {
  Family family = Family::llada;
  std::string
      architecture;  // as config.json names it ("LLaDAModelLM"), or its model_type where it names none
  std::int64_t layers = 0;
  std::int64_t heads = 0;     // query heads
  std::int64_t kv_heads = 0;  // key/value heads; each serves heads / kv_heads consecutive query heads
  std::int64_t head_dim = 0;
  std::int64_t width = 0;      // of the residual stream
  std::int64_t mlp_width = 0;  // hidden width of the gated MLP; with experts that of one of them
  std::optional<ExpertsConfig> experts;
  TensorNames names = TensorNames::olmo;
  Generation generation = Generation::masked;
  bool qkv_bias = false;     // biases on query, key and value
  bool output_bias = false;  // bias on attention's output matrix
  bool qk_norm = false;      // RMS norm of each query and key head, before RoPE
  std::int64_t embedding_rows =
      0;  // ids the model can read: rows of the embedding tensor, whatever config.json says
  std::int64_t head_rows = 0;  // ids it can predict, at most embedding_rows: width of the logits
  bool tied_head = false;      // the embedding matrix is the output matrix too
  double rope_theta = 0;
  double rope_factor = 1;  // positions are divided by it (`linear` scaling)
  std::optional<Llama3Scaling> llama3_scaling;
  /// The rotation is computed in the model's dtype with tables of that dtype, as Hugging Face's code does;
  /// else in float32, as LLaDA's does. In float32 they are the same.
  bool rope_in_storage = false;
  /// Attention of layers from `first_windowed_layer` on sees this many keys, the query's own among them; 0:
  /// all. Autoregressive models only.
  std::int64_t sliding_window = 0;
  std::int64_t first_windowed_layer = 0;
  AttentionVariant attention;
  double norm_eps = 0;
  std::int64_t max_positions = 0;    // longest sequence the model was made for
  DType weights_dtype = DType::f32;  // F32, F16 or BF16; the type of most weight elements when they are mixed
  std::optional<std::int64_t> mask_id;  // id 0 is an id like any other in all of these
  std::optional<std::int64_t> pad_id;
  std::optional<std::int64_t> bos_id;
  std::vector<std::int64_t>
      eos_ids;  // config.json's first, then what generation_config.json adds; may be empty
  std::optional<DType> declared_dtype;  // torch_dtype of config.json, a hint only

  /// Queries see only keys at or before their own position.
  bool causal() const { return generation == Generation::autoregressive; }
  /// Keys that a query of this layer sees at most; 0: all.
  std::int64_t window_of(std::int64_t layer) const {
    return layer >= first_windowed_layer ? sliding_window : 0;
  }
  /// The first of eos_ids.
  std::optional<std::int64_t> eos_id() const {
    return eos_ids.empty() ? std::nullopt : std::optional<std::int64_t>(eos_ids.front());
  }
};

}  // namespace sinkscope
