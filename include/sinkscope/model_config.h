// What a model is: the numbers a forward pass and a sampler need, in one naming whatever the checkpoint's
// own.
#pragma once

#include <sinkscope/dtype.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinkscope {

/// Models that share a forward pass, a sampler and a chat template. A new family is a line here and a row of
/// the table in src/checkpoint/families.cc.
enum class Family { llada, mmada };

/// "llada", "mmada": the word used in run.json and in messages.
std::string_view family_name(Family family);

/// Filled and checked by Checkpoint::open: every count is at least 1, heads is a multiple of kv_heads,
/// head_dim is even, ids lie below embedding_rows, and every weight tensor has the shape these numbers say.
struct ModelConfig {
  Family family = Family::llada;
  std::string
      architecture;  // as config.json names it ("LLaDAModelLM"), or its model_type where it names none
  std::int64_t layers = 0;
  std::int64_t heads = 0;      // query heads
  std::int64_t kv_heads = 0;   // key/value heads; each serves heads / kv_heads consecutive query heads
  std::int64_t head_dim = 0;   // width / heads for the families so far
  std::int64_t width = 0;      // of the residual stream
  std::int64_t mlp_width = 0;  // hidden width of the gated MLP
  std::int64_t embedding_rows =
      0;  // ids the model can read: rows of the embedding tensor, whatever config.json says
  std::int64_t head_rows = 0;  // ids it can predict, at most embedding_rows: width of the logits
  bool tied_head = false;      // the embedding matrix is the output matrix too
  double rope_theta = 0;
  double norm_eps = 0;
  std::int64_t max_positions = 0;    // longest sequence the model was made for
  DType weights_dtype = DType::f32;  // F32, F16 or BF16; the type of most weight elements when they are mixed
  std::optional<std::int64_t> mask_id;  // id 0 is an id like any other in all of these
  std::optional<std::int64_t> pad_id;
  std::optional<std::int64_t> bos_id;
  std::vector<std::int64_t>
      eos_ids;  // config.json's first, then what generation_config.json adds; may be empty
  std::optional<DType> declared_dtype;  // torch_dtype of config.json, a hint only

  /// The first of eos_ids.
  std::optional<std::int64_t> eos_id() const {
    return eos_ids.empty() ? std::nullopt : std::optional<std::int64_t>(eos_ids.front());
  }
};

}  // namespace sinkscope
