// The arrays of one autoregressive sample, sample_NNNNN.npz, written token by token while the sample runs.
#pragma once

#include <sinkscope/npz.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace sinkscope {

/// What the file will hold: L layers, H query heads, V ids.
struct TokenLayout {
  std::int64_t longest = 0;  ///< S: prompt and all tokens that may come
  std::int64_t layers = 0;
  std::int64_t heads = 0;
  std::int64_t vocabulary = 0;  ///< V
  std::int32_t prompt_length = 0;
  bool rows = true;                           ///< last_row_{t}: everything but `--capture none`
  bool logits = false;                        ///< `--capture full`
  bool intervention = false;                  ///< masked_keys_{t}
  bool effect = false;                        ///< effect_*, removed_mass: `--effect`
  ArrayType array_type = ArrayType::float16;  ///< of the attention arrays: float16 or float32
};

/// One generated token, n keys. Spans of arrays that the layout leaves out stay empty; all are row-major.
struct TokenStep {
  std::span<const std::int32_t> sequence = {};     ///< [n] prompt and the tokens before this one
  std::span<const float> last_row = {};            ///< [L,H,n] raw attention of the last query
  std::span<const std::uint8_t> masked_keys = {};  ///< [L,H,n]; empty for the first token
  std::span<const float> logits = {};              ///< [V]
  float effect_kl = 0;
  std::uint8_t effect_agrees = 1;
  float effect_confidence = 0;
  float effect_probability = 0;
  float removed_mass = 0;
};

/// Writes states [T+1,S] padded with -1, prompt_length, mask_id (-1), logits [T,V], effect_kl, effect_agrees,
/// effect_confidence, effect_probability, removed_mass [T] and, token by token, last_row_{t} and
/// masked_keys_{t} from t = 1. Errors as NpzWriter.
class TokenWriter {
 public:
  TokenWriter(std::filesystem::path path, TokenLayout layout);

  void append_token(const TokenStep& step);

  /// Prompt and all tokens become the last row of states; the file appears. Destroyed before: no trace is
  /// left.
  void finish(std::span<const std::int32_t> sequence);

 private:
  void append_state(std::span<const std::int32_t> sequence);

  TokenLayout layout_;
  NpzWriter writer_;
  std::int64_t tokens_ = 0;
};

}  // namespace sinkscope
