// The arrays of one diffusion sample, sample_NNNNN.npz, written step by step while the sample runs.
#pragma once

#include <sinkscope/npz.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <utility>
#include <vector>

namespace sinkscope {

/// What the file will hold. Letters as in the comments below: T forwards, S positions, L layers, H query
/// heads.
struct SampleLayout {
  std::int64_t positions = 0;  ///< S: prompt + generation
  std::int64_t layers = 0;     ///< L
  std::int64_t heads = 0;      ///< H
  std::int64_t kv_heads = 0;   ///< Hkv
  std::int32_t prompt_length = 0;
  std::int32_t mask_id = 0;
  bool columns = true;                    ///< column_sum: everything but `--capture none`
  bool full = false;                      ///< diagonal, row_entropy, row_max, value_norm: `--capture full`
  bool intervention = false;              ///< masked_keys
  bool own_keys = false;                  ///< queries_without_key, in place of masked_keys
  bool effect = false;                    ///< effect_*, removed_mass: `--effect`
  std::vector<std::pair<int, int>> maps;  ///< (layer, head) of `--maps`
  ArrayType array_type = ArrayType::float16;  ///< of the attention arrays: float16 or float32
};

/// One forward. Spans of arrays that the layout leaves out stay empty; all are row-major.
struct SampleStep {
  std::span<const std::int32_t> states = {};    ///< [S] input ids of this forward
  std::span<const std::int32_t> proposed = {};  ///< [S] predicted id at masked positions, else -1
  std::span<const float> confidence = {};       ///< [S] as ranked; NaN where not a candidate
  std::span<const float> column_sum =
      {};  ///< [3,L,H,S] raw column sums by query class: prompt, decoded, masked
  std::span<const std::uint8_t> masked_keys = {};           ///< [L,H,S] 1 = key removed in this forward
  std::span<const float> diagonal = {};                     ///< [L,H,S] A_jj
  std::span<const float> row_entropy = {};                  ///< [3,L,H] mean per query class, nats
  std::span<const float> row_max = {};                      ///< [3,L,H] mean per query class
  std::span<const float> value_norm = {};                   ///< [L,Hkv,S]
  std::vector<std::span<const float>> maps = {};            ///< [S,S] each, in the order of the layout
  std::span<const std::uint16_t> queries_without_key = {};  ///< [L,H,S] queries that lost the key
  // [S], of the predicted positions; elsewhere NaN and 255
  std::span<const float> effect_kl = {};
  std::span<const std::uint8_t> effect_agrees = {};
  std::span<const float> effect_confidence = {};
  std::span<const float> effect_probability = {};
  std::span<const float> removed_mass = {};
};

/// Writes states, proposed, confidence, column_sum, masked_keys or queries_without_key, prompt_length,
/// mask_id, diagonal, row_entropy, row_max, value_norm, map_L{l}_H{h}, effect_kl, effect_agrees,
/// effect_confidence, effect_probability, removed_mass in this order, those of the layout. Errors as
/// NpzWriter.
class SampleWriter {
 public:
  SampleWriter(std::filesystem::path path, SampleLayout layout);

  void append_step(const SampleStep& step);

  /// `final_ids` [S] become the last row of states; the file appears. Destroyed before: no trace is left.
  void finish(std::span<const std::int32_t> final_ids);

 private:
  SampleLayout layout_;
  NpzWriter writer_;
};

}  // namespace sinkscope
